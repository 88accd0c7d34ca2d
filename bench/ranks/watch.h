// The watch of a rank: a thread that sleeps until a deadline has passed. Then it reports the rank that this
// one waits for on stderr, and ends the process; the launcher then ends the other ranks. It also covers calls
// into MPI, which have no timeout.
//
// Each step that a rank notes here renews the deadline. Nothing happens inside a timed call: the thread wakes
// once per timeout.
#ifndef BENCH_WATCH_H
#define BENCH_WATCH_H

#include <stdbool.h>

#include "group_state.h"

// Starts the watch, before MPI_Init; the rank has `timeout_s` from here on.
void watch_begin(double timeout_s);

// This rank begins a step, and has a whole timeout for it. `name`: the candidate's, or "".
void watch_step(enum phase phase, const char *name);

// This rank waits for a request, or does work with deadlines of its own (fault_report.h): no deadline here.
void watch_rest(enum phase phase);

// Reports the rank that the others wait for, once for all ranks, if work with a deadline of its own is late;
// `what` is that work, and `caller` its rank. False, without a report, in three cases: there is no group; its
// ranks are threads, which /proc does not show; or it is a candidate's work and no rank is stopped (by
// SIGSTOP or a debugger) or gone, so that the candidate is at fault.
bool watch_report(int caller, const char *what, bool is_candidate);

#endif
