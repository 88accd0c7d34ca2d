// The pass over many ops (protocol/pass.h) on CPUs: each call has fresh data and is checked bit by bit.
// Unlike protocol/cell_pass.c it uses data with exact sums, so that cells without an epilogue need no data
// and no reference of their own, and it also times an allreduce with a separate epilogue.
#ifndef BENCH_HOST_PASS_H
#define BENCH_HOST_PASS_H

#include <stdio.h>

#include "protocol/pass_input.h"

// Collective. Sets up every candidate, and measures the input. Rank 0 prints a line `row` or `none` for each
// op and candidate, as in protocol/protocol.h, with id = the number of the cell from 1, and then a line
// `pass` with the cost. Further fields of rows:
//   epilogue=none|fused|separate|alone   how the candidate was called
//   max_of_means_us, mean_of_max_us, mean_us   other reductions: over ranks of means, over calls of maxima,
//                                              over both
//   op_us   the median with one synchronisation per op (sync=op or both; else 0)
// A candidate of a plug-in that writes to an output after it has returned ends the process, with a message of
// ranks/fault_report.h. -1: see group_failure.
int host_pass_run(struct group *group, const struct pass_input *input, FILE *out);

#endif
