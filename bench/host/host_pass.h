// One pass over many ops: every op x candidate x sample in one random order, the same on all ranks, each call
// on fresh data and checked bit by bit, all times reduced once at the end.
#ifndef BENCH_HOST_PASS_H
#define BENCH_HOST_PASS_H

#include <stdio.h>

#include "protocol/plan_file.h"

// Collective. Sets every candidate up, and measures the plan; rank 0 prints, for each op and candidate, a
// line `row` or `none` as in protocol/protocol.h, with id = the number of the cell from 1, and then a line
// `pass` about the cost of it all.
//   epilogue=none|fused|separate|alone   how the candidate was called
//   max_of_means_us, mean_of_max_us, mean_us   other reductions: over ranks of means, over calls of maxima,
//                                              over both
//   op_us   the median with one synchronisation per op (sync=both)
// A candidate of a plug-in that writes to an output after it has returned ends the process, and is told by
// ranks/fault_report.h. -1: see group_failure.
int host_pass_run(struct group *group, const struct tune_plan *plan, FILE *out);

#endif
