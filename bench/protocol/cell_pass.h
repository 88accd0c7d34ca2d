// The pass over many ops (pass.h) of backends whose cells have a place: each request of the plan is a race
// (timed_cell.h), all of them are open at once, and every call is checked where it was made.
#ifndef BENCH_CELL_PASS_H
#define BENCH_CELL_PASS_H

#include <stdio.h>

#include "plan_file.h"

// Collective. Sets every candidate up, and measures the plan; rank 0 prints a line `row` or `none` for each
// request and candidate, as in protocol/protocol.h, with its fusion and what pass.h adds, and then a line
// `pass`. What has no room beside the others, in the memory of this machine or of its GPUs, has an order of
// its own behind them. -1: see group_failure.
int cell_pass_run(struct group *group, const struct tune_plan *plan, FILE *out);

#endif
