// The calls of one shape by one candidate, and their checks.
#ifndef BENCH_TRIAL_CALL_H
#define BENCH_TRIAL_CALL_H

#include "trial_state.h"

// Collective. Calls without an epilogue, on data of which every sum is exact, then on data with rounded
// sums. -1: see group_failure.
int trial_try_shape(struct trial *trial, int index, const struct shape *shape, bool in_place);

// Collective. Calls with the epilogue of a shape. -1: see group_failure.
int trial_try_fused(struct trial *trial, int index, const struct shape *shape);

#endif
