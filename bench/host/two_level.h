// An allreduce in two levels, for ranks on several nodes: sums within each node over shared memory, then over
// the nodes by messages (node_sums.h), and back over shared memory, in slices of the message so that the
// levels overlap. Each level rounds once.
#ifndef BENCH_HOST_TWO_LEVEL_H
#define BENCH_HOST_TWO_LEVEL_H

#include "elements/strategy.h"

// Which ranks of a node send messages: its leader, for all, or each rank, for its share of each slice.
enum two_level_senders { SENDERS_LEADERS, SENDERS_ALL };

// Functions of strategies (elements/strategy.h); their setup calls two_level_setup.
const char *two_level_supports(const struct group *group, const struct call *call);
int two_level_setup(struct group *group, enum two_level_senders senders, void **state,
                    char reason[REASON_SIZE]);
int two_level_run(void *state, const struct call *call);
void two_level_teardown(void *state);

#endif
