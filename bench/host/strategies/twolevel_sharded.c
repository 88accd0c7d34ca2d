// TWOLEVEL_SHARDED: sums within each node over shared memory; every rank sums its share over the nodes by
// messages; see host/two_level.h.
#include "host/two_level.h"

static int twolevel_sharded_setup(const struct candidate *candidate, struct group *group, void **state,
                                  char reason[REASON_SIZE]) {
    (void)candidate;
    return two_level_setup(group, OVER_NODES_BY_ALL, state, reason);
}

const struct strategy strategy_twolevel_sharded = {
    .supports = two_level_supports,
    .setup = twolevel_sharded_setup,
    .run = two_level_run,
    .teardown = two_level_teardown,
};
