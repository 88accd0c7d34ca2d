// The data of a group of ranks: shared memory, counters, and the current activity of every rank. group.h has
// the functions.
#ifndef BENCH_GROUP_STATE_H
#define BENCH_GROUP_STATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "elements/kernels.h"

enum phase {
    PHASE_START,
    PHASE_SET_UP,
    PHASE_IDLE,
    PHASE_WARM_UP,
    PHASE_TIMED,
    PHASE_TEARDOWN,
    PHASE_TRIAL,
    PHASE_PASS,
};

enum { ACTIVITY_WORDS = 4 };

// What a rank does, for the other ranks: a phase, and the candidate's name, cut off if it is too long.
struct activity {
    _Alignas(64) _Atomic uint32_t phase;
    _Atomic uint64_t name[ACTIVITY_WORDS];
};

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

// The calls of a burst on one rank, for rank 0.
struct burst_record {
    _Alignas(CACHE_LINE) struct stamp stamps[MAX_BURST];
    uint32_t wrong_calls; // those with a wrong result, one bit each
    uint32_t varied;      // results that were right, with other bits than before
};

// The entry of a rank in the shared memory of its node. Nodes have of the ranks of other nodes only what
// group_share and the exchanges of group.h bring.
struct rank_entry {
    struct counter arrived; // barriers that it has reached
    int32_t pid;
    struct activity activity;
    struct burst_record burst;
    _Alignas(CACHE_LINE) unsigned char exchange[EXCHANGE_SIZE];
};

// The shared memory of the harness, one per node of a group.
struct control {
    struct counter released;   // barriers that are over
    struct counter ping, pong; // round-trip probe
    _Alignas(CACHE_LINE) _Atomic uint64_t start_at_ns;
    _Atomic uint64_t decision;
    _Alignas(CACHE_LINE) _Atomic uint32_t failed_rank; // 0: none; else rank + 1
    char failure[FAILURE_SIZE];
    struct rank_entry of[]; // by the rank in the group
};

// The bytes of the control block of `ranks` ranks.
static inline size_t control_bytes(int ranks) {
    return sizeof(struct control) + (size_t)ranks * sizeof(struct rank_entry);
}

struct node_link;

struct group {
    unsigned char comm[8]; // MPI's communicator (group_mpi.h); bytes, since some programs have no MPI
    bool shares_process;   // ranks are threads of one process
    void *device;          // this rank's device, of the backend's own type
    int rank, size;
    int nodes, node;           // the number of nodes; this rank's, from 0, in the order of their first ranks
    int ranks_per_node;        // the same on all nodes
    int local[MAX_NODE_RANKS]; // the ranks of this node, ascending; the first one is its leader
    int local_index;           // this rank's place among them
    int leaders[MAX_RANKS];    // of all nodes
    struct node_link *link;    // to other nodes (node_link.h); NULL: there are none
    int cores; // on which the ranks of a node may run, limited by the CPU quota; the fewest of a node
    bool oversubscribed; // some node has more ranks than cores
    unsigned spin_limit; // polls before the rank yields its processor
    size_t cache_bytes;  // of the last level, by the host's backend; 0: unknown
    double timeout_s;    // of one wait
    const struct kernels *kernels;
    struct control *control;
    uint64_t run_id;  // of MPI's ranks: makes names of their sockets unique among runs
    int slowest_peer; // the rank, or node, with the longest round trip from rank 0 in the first measurement
    double switch_error; // the largest error of sums of 16 bits that a switch added, in ulps; 0: none known
    uint64_t unseen_ns;  // host time of the last call before its launch, which a GPU's events do not include
};

// Whether a counter, modulo 2^32, has reached `target`.
static inline bool counter_reached(uint32_t value, uint32_t target) {
    return (int32_t)(value - target) >= 0;
}

// Nanoseconds on a clock that all ranks of this machine share.
static inline uint64_t clock_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

#endif
