// The ranks of a host run: who they are, memory that they share, and waiting for each other.
//
// A rank that waits here notices that a peer died or gave up, and that a deadline passed; the wait then
// returns false, and group_failure() says why. Calls into MPI have the deadline of watch.h.
#ifndef BENCH_HOST_GROUP_H
#define BENCH_HOST_GROUP_H

#include <mpi.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "host/kernels.h"
#include "host/watch.h"

enum { CACHE_LINE = 64, MAX_BURST = 8, PAGE_BYTES = 4096, FAILURE_SIZE = 192 };

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
};

struct group {
    MPI_Comm comm;
    int rank, size;
    int cores;           // that the ranks together may run on, CPU quota included
    bool oversubscribed; // more ranks than cores
    unsigned spin_limit; // polls before the processor is given to somebody else
    size_t cache_bytes;  // of the last level; 0: not known
    double timeout_s;    // of one wait
    const struct kernels *kernels;
    struct control *control;
};

// Collective. Opens the group over all ranks of `comm`. -1 with `reason` if this machine cannot.
int group_open(struct group *group, MPI_Comm comm, double timeout_s, char reason[], size_t reason_size);
void group_close(struct group *group);

// Collective. Zeroed private memory, on cache lines, for free(); NULL with `reason`, on all ranks alike.
void *group_allocate(struct group *group, size_t bytes, char reason[], size_t reason_size);

// Collective. Zeroed memory that all ranks map, in whole pages; gone with the last process. NULL with
// `reason`, on all ranks alike. group_unmap gives it back.
void *group_map(struct group *group, size_t bytes, char reason[], size_t reason_size);
void group_unmap(void *memory, size_t bytes);

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

// A deadline has passed: says in group_failure() who held this rank up. False: a failure stands there
// already.
void group_blame(const struct group *group);

// Gives up for all ranks: their waits return false. The first text counts.
void group_fail(const struct group *group, const char *text);

// Why a wait returned false, which has been told on stderr; NULL: nothing failed.
const char *group_failure(const struct group *group);

// Nanoseconds on a clock that all ranks of this machine share.
uint64_t clock_ns(void);

#endif
