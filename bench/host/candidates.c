// The candidates of the host backend, made from the list (generator/lists.lua).
#include "strategy.h"

#define DECLARE(source, name, fp32, algorithm, component, mpich)                                             \
    extern const struct strategy strategy_##source;
HOST_CANDIDATES(DECLARE)
#undef DECLARE

#define ROW(source, name, fp32, algorithm, component, mpich)                                                 \
    {name, &strategy_##source, fp32, algorithm, component, mpich},
const struct candidate host_candidates[] = {HOST_CANDIDATES(ROW)};
#undef ROW

_Static_assert(sizeof host_candidates / sizeof *host_candidates <= MAX_CANDIDATES, "raise MAX_CANDIDATES");
const int host_candidate_count = (int)(sizeof host_candidates / sizeof *host_candidates);
