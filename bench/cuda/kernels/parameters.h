// What a launch hands to a kernel, byte for byte as host and device see it: plain C for both. A launch is for
// one rank, or, where all ranks share a GPU, for all of them (grid.y); arrays have a place for each rank.
#ifndef BENCH_CUDA_PARAMETERS_H
#define BENCH_CUDA_PARAMETERS_H

#include <stdalign.h>
#include <stdint.h>

enum {
    MAX_TP = 16,
    MAX_BLOCKS = 1024, // of a rank, in a launch whose blocks wait for each other
    ROTATION = 3,      // buffers of ONESHOT
};

// One rank's state, in device memory, since a captured graph replays with the parameters that it had. All
// zeros at first, and again after a launch that gave up.
struct RankState {
    alignas(16) uint32_t copies[MAX_BLOCKS][4]; // for each block of a launch; see state.h
    uint32_t gave_up; // a wait was left: results are worthless, and so is the workspace
};

// The same for all ranks of a launch.
struct CallParameters {
    int32_t num_tokens, accesses_per_token;
    const void *gamma;
    float epsilon, scale;
    int32_t linear_scales, max_blocks;
    uint64_t capacity; // accesses of a message at most
    void *multicast;
    const uint32_t *give_up;
};

// What differs. Pointers that a fusion has no use for are NULL.
struct RankParameters {
    int64_t rank;
    const void *input;
    void *out;
    const void *residual;
    void *residual_out;
    void *norm_out;
    void *block_scales;
    struct RankState *state;
};

// A kernel of TP ranks takes CallParameters, void *slots[TP], uint32_t *flags[TP], RankParameters ranks[TP],
// one after the other.

// Those of exchange.h take ExchangeCall, slots, flags and ranks likewise, of which they look at the input,
// out and state alone, and then uint64_t bytes[TP][TP]: what goes from each rank to each.
struct ExchangeCall {
    const uint32_t *give_up;
    int32_t max_blocks;
    int32_t gathers; // a rank's parts for all others are one and the same
    int32_t reduces; // what is for a rank is added up
    int32_t nothing; // fills
};

// The kernels that serve all the others, and take these alone.
struct BarrierParameters { // ranks meet `times` times, from *epoch on
    uint32_t *flags[MAX_TP];
    uint32_t *epochs[MAX_TP]; // by grid.y; a launch for one rank has its own first
    const uint32_t *give_up;
    int32_t tp, rank, times;
};
struct DelayParameters {
    uint64_t nanoseconds;
};
struct ArrayParameters { // copies; or adds the hash of an array of 16-byte words to *hash
    const void *from[MAX_TP];
    void *to[MAX_TP];
    uint64_t words, salt;
};
struct EpilogueParameters { // from the sum of all ranks to the results
    struct CallParameters call;
    struct RankParameters ranks[MAX_TP]; // by grid.y; input: the sum
};

#endif
