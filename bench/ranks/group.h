// The ranks of a run: shared memory, waits and exchanges of small data. Ranks are processes that MPI started
// (group_open, group_mpi.c), or threads of this process (group_open_thread).
//
// The ranks of a node share memory. If MPI's ranks are on several nodes, exchanges between the nodes are
// messages of their leaders (node_link.h), and clocks of different nodes must not be compared.
//
// A rank that waits here notices that a peer died or failed, or that the deadline passed. The wait then
// returns false, and group_failure() returns the reason. Calls into MPI have the deadline of watch.h.
#ifndef BENCH_GROUP_H
#define BENCH_GROUP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "group_state.h"

// Leaves the group. group_mpi.h opens a group of MPI's ranks.
void group_close(struct group *group);

// Collective. Opens a group of `size` threads that share `control`, of control_bytes(size),
// which the caller owns and has zeroed.
void group_open_thread(struct group *group, struct control *control, int rank, int size, double timeout_s);

// Collective. Opens a group of processes. `control` is in memory that they share, zeroed at first;
// group_close unmaps it. `run_id` is unique among the runs on this machine.
void group_open_process(struct group *group, struct control *control, int rank, int size, double timeout_s,
                        uint64_t run_id);

// Sets the nodes of a group: all ranks are on one.
void group_set_one_node(struct group *group);

// Whether this process reaches all ranks by shared memory; else `reason`, for a strategy that needs that.
bool group_is_on_one_node(const struct group *group, char reason[], size_t reason_size);

// Collective. The common part of opening all kinds of groups, once `control` and the nodes are set.
void group_begin(struct group *group);

// Whether `ranks` ranks are possible, with so many on a node; else `reason`.
bool group_size_is_possible(int ranks, int ranks_per_node, char reason[], size_t reason_size);

// Collective. Zeroed private memory, aligned to cache lines, for free(); NULL with `reason`, on all ranks.
void *group_allocate(struct group *group, size_t bytes, char reason[], size_t reason_size);

// Collective. Zeroed memory that all ranks of this node map, in whole pages, until group_unmap or the end of
// the process. NULL with `reason`, on all ranks of all nodes.
void *group_map(struct group *group, size_t bytes, char reason[], size_t reason_size);
void group_unmap(void *memory, size_t bytes);

// The steps of group_map. The leader makes a file without a name; the others open the file that process `pid`
// has open as `number`; all map it. On failure -1 or NULL, and *error.
int group_make_segment(size_t bytes, int *error);
int group_open_segment(int pid, int number, int *error);
void *group_map_segment(int file, size_t bytes, int *error);

// Waits until *counter has reached `target` (counting modulo 2^32), with acquire order. False: see
// group_failure.
bool group_wait_slow(struct group *group, const _Atomic uint32_t *counter, uint32_t target);

static inline bool group_wait(struct group *group, const _Atomic uint32_t *counter, uint32_t target) {
    if (counter_reached(atomic_load_explicit(counter, memory_order_acquire), target)) return true;
    return group_wait_slow(group, counter, target);
}

// One poll of a wait loop of the caller: call it until the condition holds, with *polls and *since_ns 0 at
// first. False: see group_failure.
bool group_poll(struct group *group, uint64_t *polls, uint64_t *since_ns);

// All ranks arrive before any leaves. False: see group_failure.
bool group_barrier(struct group *group);

// The same among the ranks of this node.
bool group_node_barrier(struct group *group);

// A barrier that all ranks of a node leave at the same time on its clock, if each rank has a core of its own.
bool group_start_together(struct group *group);

// Sets *value to rank 0's on all ranks; also a barrier.
bool group_agree(struct group *group, uint64_t *value);

// A barrier after which the control block of every node has one field of the entries of all ranks (`first` is
// that of rank 0, of `bytes`). At most EXCHANGE_SIZE bytes. False: see group_failure.
bool group_share(struct group *group, void *first, size_t bytes);

// Collective. Copies every rank's `mine`, of at most EXCHANGE_SIZE bytes, to `all`, in rank order. False: see
// group_failure; the reductions below then return this rank's own value, and the next wait returns false.
bool group_exchange(struct group *group, const void *mine, size_t bytes, void *all);
bool group_broadcast(struct group *group, int root, void *data, size_t bytes);     // at most EXCHANGE_SIZE
bool group_gather(struct group *group, const void *mine, size_t bytes, void *all); // of any size
double group_max(struct group *group, double mine);
long group_min(struct group *group, long mine);
uint64_t group_sum(struct group *group, uint64_t mine); // modulo 2^64

// Collective. Whether is_right holds on all ranks; else `reason` becomes that of the first rank without it.
bool group_all_right(struct group *group, bool is_right, char reason[], size_t reason_size);

// Call it if this rank cannot continue. Writes the reason to stderr, and ends all waits of all ranks. Only
// the first reason of a group counts.
void group_fail(const struct group *group, const char *reason);

// Call it after a deadline has passed. Fails the group with the rank that this one waited for, unless it has
// failed already.
void group_fail_late(const struct group *group);

// Why a wait returned false, which has already been written to stderr; NULL: nothing failed.
const char *group_failure(const struct group *group);

// Takes over the failure of another node, which has written it to stderr.
void group_take_failure(const struct group *group, const char *reason);

#endif
