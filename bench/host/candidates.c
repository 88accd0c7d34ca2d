// The candidates of the host backend, from the list (generator/lists/lists.lua); plug-ins append their own.
#include "elements/strategy.h"

#define DECLARE(source, name, fp32, ops, algorithms, component, mpich, optional, its_span)                   \
    extern const struct strategy strategy_##source;
HOST_CANDIDATES(DECLARE)
#undef DECLARE

#define ROW(source, its_name, fp32, its_ops, algorithms, component, mpich, optional, its_span)               \
    {.name = its_name,                                                                                       \
     .strategy = &strategy_##source,                                                                         \
     .accumulates_fp32 = fp32,                                                                               \
     .ops = its_ops,                                                                                         \
     .ompi_algorithms = algorithms,                                                                          \
     .ompi_component = component,                                                                            \
     .mpich_algorithm = mpich,                                                                               \
     .is_optional = optional,                                                                                \
     .span = its_span},
struct candidate host_candidates[MAX_CANDIDATES] = {HOST_CANDIDATES(ROW)};
#undef ROW

#define COUNT(source, name, fp32, ops, algorithms, component, mpich, optional, its_span) +1
int host_candidate_count = 0 HOST_CANDIDATES(COUNT);
#undef COUNT
