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

#include "elements/kernels.h"
#include "watch.h"

enum { CACHE_LINE = 64, MAX_BURST = 8, PAGE_BYTES = 4096, FAILURE_SIZE = 192, EXCHANGE_SIZE = 1024 };

// A counter with a cache line to itself. Counters only grow, and wrap around.
struct counter {
    _Alignas(CACHE_LINE) _Atomic uint32_t value;
};

// When one rank entered and left one call, on the clock that all ranks share.
struct stamp {
    uint64_t start_ns;
    uint64_t end_ns;
};

// What the harness shares: one per group.
struct control {
    struct counter arrived[MAX_RANKS]; // barriers that a rank has reached
    struct counter released;           // barriers that are over
    struct counter ping, pong;         // round-trip probe
    _Alignas(CACHE_LINE) _Atomic uint64_t start_at_ns;
    _Atomic uint64_t decision;
    _Alignas(CACHE_LINE) _Atomic uint32_t failed_rank; // 0: nobody; else rank + 1
    char failure[FAILURE_SIZE];
    int32_t pids[MAX_RANKS];
    struct activity activities[MAX_RANKS];
    struct stamp stamps[MAX_RANKS][MAX_BURST];
    uint32_t wrong[MAX_RANKS];  // a rank's result was wrong
    uint32_t varied[MAX_RANKS]; // or right, with other bits than before
    _Alignas(CACHE_LINE) unsigned char exchange[MAX_RANKS][EXCHANGE_SIZE];
};

struct group {
    unsigned char comm[8]; // of MPI's ranks: their communicator (group_mpi.h), which not all programs know
    bool shares_process;   // ranks are threads of one process
    void *device;          // what this rank runs on, as its backend knows it
    int rank, size;
    int cores;           // that the ranks together may run on, CPU quota included
    bool oversubscribed; // more ranks than cores
    unsigned spin_limit; // polls before the processor is given to somebody else
    size_t cache_bytes;  // of the last level; 0: not known
    double timeout_s;    // of one wait
    const struct kernels *kernels;
    struct control *control;
    uint64_t run_id;    // of MPI's ranks: tells their sockets from those of other runs
    int slowest_peer;   // the rank that was slowest to answer rank 0 at first
    uint64_t unseen_ns; // what the last call's strategy did before it launched, for clocks that do not see it
};

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

static inline bool counter_reached(uint32_t value, uint32_t target) {
    return (int32_t)(value - target) >= 0;
}

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

// Nanoseconds on a clock that all ranks of this machine share.
uint64_t clock_ns(void);

#endif
