// Compares a cell's results with its reference; see cell_check.h. The build defines BUILT_KERNELS as for
// elements/kernels.c.
#include "cell_check.h"

#include <math.h>

#include "check_kernels.h"
#include "elements/element.h"

enum { MOST_SUMS = 1 << 16 };

// Beside a unit in the last place of a smaller sum the roundings of fp32 on the way are not small.
static const double LEAST_SUM = 0.0625;

#define KERNELS(isa) extern check_kernel check_kernel_##isa;
BUILT_KERNELS
#undef KERNELS

// In the order of kernels_all.
#define KERNELS(isa) check_kernel_##isa,
static check_kernel *const check_kernels[] = {BUILT_KERNELS};
#undef KERNELS

check_kernel *check_kernel_like(const struct kernels *kernels) {
    int i = 0;
    while (kernels_all[i] != kernels) i++;
    return check_kernels[i];
}

bool cell_check_part(const struct cell *cell, size_t data_set, struct cell_part part,
                     enum sum_rounding rounding, char what[], size_t what_size) {
    return check_kernel_like(kernels_best())(cell, data_set, part, rounding, what, what_size);
}

double cell_sum_error(const struct cell *cell, size_t data_set, struct cell_part part) {
    const struct shape *shape = &cell->shape;
    size_t count = part.count < MOST_SUMS ? part.count : MOST_SUMS;
    double largest = 0;
    if (shape->op != OP_ALLREDUCE || shape->fusion != FUSION_NONE || shape->dtype == DTYPE_FLOAT32) return 0;
    for (size_t i = part.first; i < part.first + count; i++) {
        double sum = cell_sum(cell, data_set, i);
        if (fabs(sum) < LEAST_SUM) continue;
        largest = fmax(largest, ulps_between(shape->dtype, sum, element_value(shape->dtype, cell->out, i)));
    }
    return largest;
}

bool cell_check(const struct cell *cell, size_t data_set, enum sum_rounding rounding, char what[],
                size_t what_size) {
    return cell_check_part(cell, data_set, cell_part_of(cell, 0, 1), rounding, what, what_size);
}
