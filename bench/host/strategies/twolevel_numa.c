// TWOLEVEL_NUMA: sums within each NUMA node; every rank sums its share over the NUMA nodes; see
// host/two_level.h.
#include "host/two_level.h"

static int twolevel_numa_setup(const struct candidate *candidate, struct group *group, void **state,
                               char reason[REASON_SIZE]) {
    (void)candidate;
    return two_level_setup(group, OVER_NUMA_NODES, state, reason);
}

const struct strategy strategy_twolevel_numa = {
    .supports = two_level_supports,
    .setup = twolevel_numa_setup,
    .run = two_level_run,
    .teardown = two_level_teardown,
};
