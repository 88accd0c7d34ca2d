// What a strategy is: a struct of functions, one file each, the same functions in the same order. Read one,
// know all.
//
// How to add one on CPUs: bench/host/strategies/SOURCE.c with `const struct strategy strategy_SOURCE`, and a
// row of generator/lists/lists.lua whose `source` is that. The check against the reference and the physical
// bound are the same for all strategies of a backend; they are in calls/cell_check.c and measure/harness.c.
#ifndef BENCH_STRATEGY_H
#define BENCH_STRATEGY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lists.h"

enum { MAX_RANKS = 16 };

struct group;

// How much goes from where to where, in elements: `sent[rank]` to that rank, from `send_at[rank]` of the
// input; `received[rank]` from it, to `receive_at[rank]` of the output. `largest` is the most that any rank
// sends any other. Alike on all ranks as far as they are the same.
struct traffic {
    size_t send_elements, receive_elements; // all of the input and of the output
    size_t sent[MAX_RANKS], send_at[MAX_RANKS], received[MAX_RANKS], receive_at[MAX_RANKS];
    size_t largest;
};

// One call, as one rank sees it. All memory belongs to the caller. Ops but the allreduce move or add what
// `traffic` says, of `dtype`, and have no fusion: an allgather sends all of the input to every rank, a
// broadcast that of rank `root`; a reducescatter adds what is received from all ranks, which goes to the
// beginning of the output.
//
// Of an allreduce, arrays are row-major [num_tokens, hidden_size]. The sum over ranks of `input` goes
//   FUSION_NONE: to `out`;
//   the others: r = round(sum + residual) to `residual_out`, y = round(r * rsqrt(mean(r^2) + epsilon) *
//   gamma) of each row to `out`, or, quantised, its codes to `out` (FP8: one byte, y / scale in e4m3; NVFP4:
//   two codes a byte, with a scale per 16 elements in `block_scales`; `scale` is then the global scale).
struct call {
    enum op op;
    const struct traffic *traffic; // NULL for an allreduce
    int root;
    void **plan; // where a strategy may keep what it prepared for this shape; NULL: nowhere
    enum dtype dtype;
    enum fusion fusion;
    size_t num_tokens;
    size_t hidden_size;
    bool is_size_alone; // one token of all elements, for want of a shape: any other will do
    const void *input;
    const void *residual;
    const void *gamma; // [hidden_size]
    void *residual_out;
    void *out;
    uint8_t *block_scales;
    void *norm_out;  // room for the rounded norm that is quantised; NULL: there is none
    bool tells_norm; // it is wanted there, for the check
    bool captured;   // into a graph
    float epsilon;
    float scale;
};

// Of the larger one of this rank's input and output.
static inline size_t call_elements(const struct call *call) {
    return call->num_tokens * call->hidden_size;
}

static inline size_t call_bytes(const struct call *call) {
    return call_elements(call) * dtype_sizes_bytes[call->dtype];
}

enum { REASON_SIZE = 160, MAX_CANDIDATES = 192, MAX_IN_A_REQUEST = 62 };

struct candidate;

struct strategy {
    // Why this call cannot be done, or NULL. Decides alike on all ranks.
    const char *(*supports)(const struct group *group, const struct call *call);
    // Collective. Makes the state of one rank; -1: cannot be had here, and `reason` says why, alike on all
    // ranks.
    int (*setup)(const struct candidate *candidate, struct group *group, void **state,
                 char reason[REASON_SIZE]);
    // Collective; returns when this rank's results are complete, or, on a GPU, will be once its stream is
    // through. -1: a peer is gone or hangs (the group says who).
    int (*run)(void *state, const struct call *call);
    // Collective. Frees the state.
    void (*teardown)(void *state);
    // Collective, before the first call of a cell; NULL: there is nothing to prepare. Not 0: `reason`, alike
    // on all ranks; 1: it is not made for such a call.
    int (*prepare)(void *state, const struct call *call, char reason[REASON_SIZE]);
};

// A strategy by its name in rows and tables, with its parameters.
struct candidate {
    const char *name;
    const struct strategy *strategy;
    bool accumulates_fp32;    // sums in fp32 in rank order: all ranks agree bit for bit; else rounds at every
                              // step
    unsigned ops;             // one bit each
    int ompi_algorithms[OPS]; // 0: the library's choice
    const char *ompi_component;
    const char *mpich_algorithm;
    const struct plugin_candidate *plugin; // NULL: one of ours; see plugin_loader/plugins.h
    bool bits_may_vary;                    // although it sums in fp32, who adds first is not told
    bool is_optional;                      // runs where it is asked for by name
    const void *detail;                    // what else its backend has to know
};

static inline bool candidate_does(const struct candidate *candidate, enum op op) {
    return (candidate->ops >> op & 1) != 0;
}

// All candidates of the host backend, in the order of the list, then those of plug-ins.
extern struct candidate host_candidates[MAX_CANDIDATES];
extern int host_candidate_count;

#endif
