// The loops of cell_check: compiled once per instruction set from check_kernels.c, chosen at run time. All
// have the same results. Private to cell_check.c and its tests.
#ifndef BENCH_CHECK_KERNELS_H
#define BENCH_CHECK_KERNELS_H

#include "cell.h"
#include "elements/kernels.h"

// See cell_check_part.
typedef bool check_kernel(const struct cell *cell, size_t data_set, struct cell_part part,
                          enum sum_rounding rounding, char what[], size_t what_size);

// The one of the same instruction set as `kernels`.
check_kernel *check_kernel_like(const struct kernels *kernels);

#endif
