// What a kernel is given, on one rank: its call and its workspace. Plain data, the same for host and device.
#ifndef BENCH_CUDA_ARGUMENTS_H
#define BENCH_CUDA_ARGUMENTS_H

#include "layer.h"

constexpr int MAX_TP = 16;
constexpr int ROTATION = 3; // buffers of ONESHOT
constexpr int PHASES = 2;   // barriers of a launch, at most

enum class Fusion { none, rms_norm, fp8, nvfp4 };
enum class Accumulate { native, fp32 };

// One rank's state, in device memory, since a captured graph replays with the parameters that it had. All
// zeros at first, and again after a launch that gave up.
struct RankState {
    uint32_t epoch;            // launches so far
    uint32_t blocks_done;      // of the launch at hand
    uint32_t filled[ROTATION]; // accesses, per source rank, that lie in each buffer of ONESHOT
    uint32_t gave_up;          // a wait was left: results are worthless, and so is the workspace
};

struct Call {
    int num_tokens;
    int accesses_per_token; // hidden_size / elements per access
    const Word4 *input;
    Word4 *out;            // NONE, RESIDUAL_RMS_NORM
    const Word4 *residual; // the fusions
    Word4 *residual_out;   // the fusions
    const Word4 *gamma;    // the fusions
    Word4 *norm_out;       // the rounded norm that is quantised, for checks; NULL: not wanted
    uint8_t *codes;        // FP8: a byte per element; NVFP4: two elements a byte
    uint8_t *block_scales; // NVFP4
    bool linear_scales;    // NVFP4: row by row, else swizzled in tiles of 128 x 4
    float epsilon;
    float scale; // FP8: y is divided by it; NVFP4: the global scale
};

// Workspaces of all ranks, as this rank addresses them.
//   ONESHOT       slots: [ROTATION][TP sources][capacity]
//   TWOSHOT       slots: inputs[capacity], sums[capacity]
//   NVLS_ONESHOT  slots: [2][capacity], inputs
//   NVLS_TWOSHOT  slots: inputs[capacity], sums[capacity]
struct Workspace {
    Word4 *slots[MAX_TP];
    Word4 *multicast;        // NVLS: all ranks' slots at once
    uint32_t *flags[MAX_TP]; // all but ONESHOT: [PHASES][TP sources][max_blocks]
    size_t capacity;         // accesses of a message at most
    int max_blocks;
    RankState *state;        // this rank's
    const uint32_t *give_up; // set by the host; device or pinned memory
};

struct Arguments {
    int rank;
    Call call;
    Workspace workspace;
};

#endif
