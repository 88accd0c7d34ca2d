// The exchange of small data between the nodes of a group, by the leader of each node. group.c uses it
// through these functions, so that programs without MPI have none; mpi_node_link.h makes one.
#ifndef BENCH_NODE_LINK_H
#define BENCH_NODE_LINK_H

#include <stdbool.h>
#include <stddef.h>

#include "group_state.h"

enum { EVERY_RANK = -1 };

// An array in the control block with an entry of `bytes` for each rank, `stride` bytes apart. `root`: the
// rank with the entry that is passed on, or EVERY_RANK.
struct shared {
    void *first;
    size_t stride, bytes;
    int root;
};

struct node_link {
    // Only leaders call it, all of them. Each passes the entries of its node on to all other nodes. False:
    // see group_failure.
    bool (*exchange)(struct group *group, const struct shared *shared);
    // A rank that waits calls it again and again: messages of earlier calls into MPI may need its help. Takes
    // over failures of other nodes.
    void (*progress)(const struct group *group);
    // Sends the reason of a failure to the other nodes, which may not receive it any more.
    void (*spread_failure)(const struct group *group);
    void (*close)(struct group *group);
};

// How much longer than `timeout_s` a wait lasts if the fault seems to be on another node.
static inline double node_grace_s(double timeout_s) {
    return 0.5 + timeout_s / 16;
}

#endif
