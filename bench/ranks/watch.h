// The watch of a rank: a thread that sleeps until a deadline has passed, then says on stderr who held this
// rank up, and ends it, whereupon the launcher ends the others. It covers calls into MPI too, which wait for
// ever.
//
// A rank tells it what it does, which renews the deadline. Nothing here is done inside of a timed call: the
// thread wakes once per timeout.
#ifndef BENCH_HOST_WATCH_H
#define BENCH_HOST_WATCH_H

#include <stdbool.h>

#include "group_state.h"

// Starts the watch, before MPI_Init; the rank has `timeout_s` from here on.
void watch_begin(double timeout_s);

// This rank now does this, and has a whole timeout for it. `name`: of the candidate, or "".
void watch_step(enum phase phase, const char *name);

// This rank waits for a request, or does what has deadlines of its own (fault_report.h): none here.
void watch_rest(enum phase phase);

// Work with a deadline of its own, `what`, is late: says who holds the watched ranks up, once for all of
// them. False: nothing was said, for there is none, or ranks are threads, of which the kernel tells nothing;
// or it is a candidate's work, and no rank is stopped (as by SIGSTOP or a debugger) or gone, so that it is
// his fault.
bool watch_report(int asking, const char *what, bool is_candidate);

#endif
