// The candidates of the host backend, made from the list (generator/lists.lua); plug-ins append theirs.
#include "strategy.h"

#define DECLARE(source, name, fp32, ops, algorithms, component, mpich)                                       \
    extern const struct strategy strategy_##source;
HOST_CANDIDATES(DECLARE)
#undef DECLARE

#define ROW(source, name, fp32, ops, algorithms, component, mpich)                                           \
    {name, &strategy_##source, fp32, ops, algorithms, component, mpich, NULL},
struct candidate host_candidates[MAX_CANDIDATES] = {HOST_CANDIDATES(ROW)};
#undef ROW

#define COUNT(source, name, fp32, ops, algorithms, component, mpich) +1
int host_candidate_count = 0 HOST_CANDIDATES(COUNT);
#undef COUNT
