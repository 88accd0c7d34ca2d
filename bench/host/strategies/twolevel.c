// TWOLEVEL: sums within each node over shared memory; the leaders of the nodes sum them over the nodes by
// messages; see host/two_level.h.
#include "host/two_level.h"

static int twolevel_setup(const struct candidate *candidate, struct group *group, void **state,
                          char reason[REASON_SIZE]) {
    (void)candidate;
    return two_level_setup(group, OVER_NODES_BY_LEADERS, state, reason);
}

const struct strategy strategy_twolevel = {
    .supports = two_level_supports,
    .setup = twolevel_setup,
    .run = two_level_run,
    .teardown = two_level_teardown,
};
