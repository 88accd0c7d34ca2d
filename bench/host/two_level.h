// An allreduce in two levels, in slices of the message so that the levels overlap. Each level rounds once.
//
// Ranks on several nodes: sums within each node over shared memory, then over the nodes by messages
// (node_sums.h), and back over shared memory. Ranks on one node with several NUMA nodes: sums within each
// NUMA node, then over the NUMA nodes, all over shared memory; a rank then reads from other NUMA nodes only
// its share of their sums. Each page of shared memory is in the NUMA node of the rank that writes it.
#ifndef BENCH_HOST_TWO_LEVEL_H
#define BENCH_HOST_TWO_LEVEL_H

#include "elements/strategy.h"

// The upper level. Over nodes the leader of a node sends messages for all its ranks, or each rank for its
// share of each slice; over NUMA nodes each rank sums its share.
enum upper_level { OVER_NODES_BY_LEADERS, OVER_NODES_BY_ALL, OVER_NUMA_NODES };

// Functions of strategies (elements/strategy.h); their setup calls two_level_setup.
const char *two_level_supports(const struct group *group, const struct call *call);
int two_level_setup(struct group *group, enum upper_level upper, void **state, char reason[REASON_SIZE]);
int two_level_run(void *state, const struct call *call);
void two_level_teardown(void *state);

#endif
