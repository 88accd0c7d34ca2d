// A kernel's arguments on one rank: its call and its workspace.
#ifndef BENCH_CUDA_ARGUMENTS_H
#define BENCH_CUDA_ARGUMENTS_H

#include "layer.h"
#include "parameters.h"

constexpr int PHASES = 2; // barriers of a launch, at most

enum class Accumulate { native, fp32 };

struct Call {
    int num_tokens;
    int accesses_per_token; // hidden_size / elements per access
    int accesses_per_block; // of a token: the blocks of a cluster share its tokens
    const Word4 *input;
    Word4 *out;            // NONE, RESIDUAL_RMS_NORM; the same memory as `codes`
    const Word4 *residual; // the fusions
    Word4 *residual_out;   // the fusions
    const Word4 *gamma;    // the fusions
    Word4 *norm_out;       // the rounded norm that is quantised, for checks; NULL: not stored
    uint8_t *codes;        // of the elements, if the fusion quantises
    uint8_t *block_scales; // of blocks of elements, if the fusion has them
    bool linear_scales;    // row by row, else swizzled in tiles of 128 x 4
    float epsilon;
    float scale; // of the fusion
};

// Workspaces of all ranks, as this rank addresses them.
//   ONESHOT, ONESHOT_MULTICAST  slots: [ROTATION][TP sources][capacity]
//   TWOSHOT                     slots: inputs[capacity], sums[capacity]
//   NVLS_ONESHOT                slots: [2][capacity], inputs
//   NVLS_TWOSHOT                slots: inputs[capacity], sums[capacity]
struct Workspace {
    Word4 *const *slots;    // of each rank
    Word4 *multicast;       // all ranks' slots at once; only for strategies that need it
    uint32_t *const *flags; // of each rank, for strategies with barriers: [PHASES][TP sources][max_blocks]
    size_t capacity;        // accesses of a message at most
    int max_blocks;
    RankState *state;        // this rank's
    const uint32_t *give_up; // set by the host; device or pinned memory
};

struct Arguments {
    int rank;
    Call call;
    Workspace workspace;
};

// What a kernel of TP ranks is launched with; see parameters.h.
template <int tp> struct Launch {
    CallParameters call;
    Word4 *slots[tp];
    uint32_t *flags[tp];
    RankParameters ranks[tp];
};

DEVICE_FUNCTION Call call_of(const CallParameters &call, const RankParameters &rank) {
    return {call.num_tokens,
            call.accesses_per_token,
            call.accesses_per_block,
            static_cast<const Word4 *>(rank.input),
            static_cast<Word4 *>(rank.out),
            static_cast<const Word4 *>(rank.residual),
            static_cast<Word4 *>(rank.residual_out),
            static_cast<const Word4 *>(call.gamma),
            static_cast<Word4 *>(rank.norm_out),
            static_cast<uint8_t *>(rank.out),
            static_cast<uint8_t *>(rank.block_scales),
            call.linear_scales != 0,
            call.epsilon,
            call.scale};
}

// The accesses of a token, from `begin` up to `end`, that this block handles.
struct Columns {
    int begin, end;
};
DEVICE_FUNCTION Columns columns_of(const Call &call) {
    int begin = static_cast<int>(cluster_rank()) * call.accesses_per_block;
    int end = begin + call.accesses_per_block;
    return {begin, end < call.accesses_per_token ? end : call.accesses_per_token};
}

// The arguments of this block's rank.
template <int tp> DEVICE_FUNCTION Arguments arguments_of(const Launch<tp> &launch) {
    const RankParameters &mine = launch.ranks[rank_index()];
    return {static_cast<int>(mine.rank),
            call_of(launch.call, mine),
            {launch.slots, static_cast<Word4 *>(launch.call.multicast), launch.flags, launch.call.capacity,
             launch.call.max_blocks, mine.state, launch.call.give_up}};
}

#endif
