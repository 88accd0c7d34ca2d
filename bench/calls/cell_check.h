// Checks the results of a cell, so that no wrong strategy is timed.
#ifndef BENCH_CELL_CHECK_H
#define BENCH_CELL_CHECK_H

#include "cell.h"

// Whether the results of the call of data set `data_set` are right. Moved data must be equal as numbers.
// Sums are compared with float64: those accumulated in fp32 must be within one rounding (two if the sum is
// rounded on its way), those rounded at every step within a bound that grows with the ranks. A switch may
// round to either neighbour: its sums must be within two roundings, which is 1 unit in the last place. The
// norm and the codes are compared with the float64 norm of the residual that the call wrote, so that such a
// difference is not amplified there, and their tolerance is the same for all. If wrong, `what` names
// the first wrong element.
bool cell_check(const struct cell *cell, size_t data_set, enum sum_rounding rounding, char what[],
                size_t what_size);

// The same for a part of the results of an allreduce.
bool cell_check_part(const struct cell *cell, size_t data_set, struct cell_part part,
                     enum sum_rounding rounding, char what[], size_t what_size);

// The largest error of the sums of 16 bits in a part of the results of an allreduce without an epilogue, in
// units in the last place; 0 for other results. Of a large part only the first sums are compared.
double cell_sum_error(const struct cell *cell, size_t data_set, struct cell_part part);

#endif
