// Whether the results of a cell are right; nothing wrong is timed.
#ifndef BENCH_CELL_CHECK_H
#define BENCH_CELL_CHECK_H

#include "cell.h"

// Whether the results of call `shift` are right: what was moved bit by bit; sums against float64: what was
// accumulated in fp32 within one rounding (two where sums travel rounded), what was rounded at every step
// within a bound that grows with the ranks; the norm and the codes against the float64 norm of the residual
// that was written. Else `what` names the first wrong element.
bool cell_check(const struct cell *cell, size_t shift, bool accumulates_fp32, char what[], size_t what_size);

#endif
