// The pass over many ops (pass.h) of backends that copy cells to device memory: each request of the input is
// a timed cell (timed_cell.h), all of them are open at once, and every call is checked.
#ifndef BENCH_CELL_PASS_H
#define BENCH_CELL_PASS_H

#include <stdio.h>

#include "pass_input.h"

// Collective. Sets up every candidate, and measures the input. Rank 0 prints a line `row` or `none` for each
// request and candidate, as in protocol/protocol.h, with its fusion and the fields of pass.h, and then a line
// `pass`. Cells that do not fit into the memory of this machine or its GPUs together with the others are
// measured after them, in an order of their own. -1: see group_failure.
int cell_pass_run(struct group *group, const struct pass_input *input, FILE *out);

#endif
