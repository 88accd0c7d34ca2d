// The ranks of a run: who they are, memory that they share, waiting for each other, and telling each other
// small things. They are processes that MPI started (group_open, group_mpi.c), or threads of this one
// (group_open_thread); all on one machine.
//
// A rank that waits here notices that a peer died or gave up, and that a deadline passed; the wait then
// returns false, and group_failure() says why. Calls into MPI have the deadline of watch.h.
#ifndef BENCH_HOST_GROUP_H
#define BENCH_HOST_GROUP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "group_state.h"

// Leaves the group; group_mpi.h opens that of MPI's ranks.
void group_close(struct group *group);

// Collective. Opens that of `size` threads that share `control`, zeroed and the caller's.
void group_open_thread(struct group *group, struct control *control, int rank, int size, double timeout_s);

// Collective. What both have in common, once there is a control.
void group_begin(struct group *group);

// Whether so many ranks are possible.
bool group_size_is_possible(int size);

// Collective. Zeroed private memory, on cache lines, for free(); NULL with `reason`, on all ranks alike.
void *group_allocate(struct group *group, size_t bytes, char reason[], size_t reason_size);

// Collective. Zeroed memory that all ranks map, in whole pages; gone with the last process. NULL with
// `reason`, on all ranks alike. group_unmap gives it back.
void *group_map(struct group *group, size_t bytes, char reason[], size_t reason_size);
void group_unmap(void *memory, size_t bytes);

// The parts of that. Rank 0: a file without a name. The others: the file that the process has under this
// number. Both: maps it. -1 or NULL, and *error, where that cannot be.
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

// Waiting by hand: call with a counter of polls that begins at 0, while what is waited for is not there.
bool group_poll(struct group *group, uint64_t *polls, uint64_t *since_ns);

// All ranks arrive before any leaves. False: see group_failure.
bool group_barrier(struct group *group);

// A barrier that all ranks leave at one time on the clock, as far as each has a core of its own.
bool group_start_together(struct group *group);

// Rank 0's value, on all ranks; a barrier too.
bool group_agree(struct group *group, uint64_t *value);

// Collective. Every rank's `mine`, of at most EXCHANGE_SIZE bytes, into `all`, in rank order. False: see
// group_failure. The functions that stand on it return this rank's own value then, and the next wait false.
bool group_exchange(struct group *group, const void *mine, size_t bytes, void *all);
bool group_broadcast(struct group *group, int root, void *data, size_t bytes);     // at most EXCHANGE_SIZE
bool group_gather(struct group *group, const void *mine, size_t bytes, void *all); // as many as there are
double group_max(struct group *group, double mine);
long group_min(struct group *group, long mine);
uint64_t group_sum(struct group *group, uint64_t mine); // modulo 2^64

// Whether all ranks are right; else `reason` is that of the first one that is not, on all ranks.
bool group_all_right(struct group *group, bool is_right, char reason[], size_t reason_size);

// Ends all waits of all ranks, and says why on stderr: this rank cannot go on. The first reason counts.
void group_fail(const struct group *group, const char *reason);

// A deadline has passed: says in group_failure() who held this rank up, unless a failure stands there
// already.
void group_blame(const struct group *group);

// Why a wait returned false, which has been told on stderr; NULL: nothing failed.
const char *group_failure(const struct group *group);

#endif
