// Whether a result is right. Values are small integers, so sums are exact before they are stored. All of it
// is checked at once by Freivalds' method (Probabilistic machines can use less running time, 1977): out * x
// = A * (B * x) for random x of +1 and -1, which costs as much as reading the operands; convolutions are
// linear in their input and their filters, and are checked alike. Single elements are computed besides,
// with the bound of one rounding. An algorithm that transforms its operands (Winograd's, Fourier's) is
// near the exact sums only: what it returns is read as the integers nearest to it (replay/data.h).
#ifndef REPLAY_CHECK_H
#define REPLAY_CHECK_H

#include "data.h"

// Checks `operands->out`. -1, with a reason: it is wrong, or there is no memory for the check.
int check_result(const struct op *op, const struct operands *operands, int threads, char reason[]);

// The single elements alone.
int check_elements(const struct op *op, const struct operands *operands, char reason[]);

#endif
