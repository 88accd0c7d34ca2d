// Parameters of kernels, with the same bytes on host and device: plain C for both. A launch is for one rank,
// or, if all ranks share a GPU, for all of them (grid.y); arrays have an element for each rank.
#ifndef BENCH_CUDA_PARAMETERS_H
#define BENCH_CUDA_PARAMETERS_H

#include <stdalign.h>
#include <stdint.h>

enum {
    MAX_TP = 16,
    MAX_BLOCKS = 1024, // of a rank, in a launch in which blocks wait for each other
    ROTATION = 3,      // buffers of ONESHOT and ONESHOT_MULTICAST
};

// A rank's state. It is in device memory, because a captured graph is replayed with the parameters of its
// capture. All zeros at first, and again after a launch that gave up.
struct RankState {
    alignas(16) uint32_t copies[MAX_BLOCKS][4]; // for each block of a launch; see state.h
    uint32_t gave_up;                           // a wait was left; results and the workspace are worthless
};

// The same for all ranks of a launch.
struct CallParameters {
    int32_t num_tokens, accesses_per_token;
    int32_t accesses_per_block, nothing; // of a token; padding
    const void *gamma;
    float epsilon, scale;
    int32_t linear_scales, max_blocks;
    uint64_t capacity; // accesses of a message at most
    void *multicast;
    const uint32_t *give_up;
};

// Different for each rank. Pointers that a fusion does not use are NULL.
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

// Kernels of exchange.h take ExchangeCall, slots, flags and ranks likewise, of which they use only input, out
// and state, and then uint64_t bytes[TP][TP], from each rank to each rank.
struct ExchangeCall {
    const uint32_t *give_up;
    int32_t max_blocks;
    int32_t gathers; // a rank sends the same part to all others
    int32_t reduces; // the parts for a rank are added
    int32_t nothing; // padding
};

// Parameters of the kernels in helpers.h.
struct BarrierParameters { // `times` barriers of the ranks, from the epoch at epochs[]
    uint32_t *flags[MAX_TP];
    uint32_t *epochs[MAX_TP]; // by grid.y; a launch for one rank has its own first
    const uint32_t *give_up;
    int32_t tp, rank, times;
};
struct DelayParameters {
    uint64_t nanoseconds;
};
// Copies arrays; or adds to the number at to[0] the number of bytes in which from[0] and from[1] differ.
struct ArrayParameters {
    const void *from[MAX_TP];
    void *to[MAX_TP];
    uint64_t words; // of 16 bytes; for a comparison bytes
};
struct HashParameters { // adds to hashes[i] a hash of the array that begins i * pitch bytes after `arrays`
    const void *arrays;
    uint64_t *hashes;
    uint64_t count, pitch; // of the arrays; the grid has as many blocks for each
    uint64_t words, salt;  // of an array; words of 16 bytes
};
struct EpilogueParameters { // from the sum of all ranks to the results
    struct CallParameters call;
    struct RankParameters ranks[MAX_TP]; // by grid.y; input: the sum
};

#endif
