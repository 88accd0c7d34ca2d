// The interface of strategies: a struct of functions, one file each, with the same functions in the same
// order.
//
// How to add a strategy for CPUs: one file, bench/host/strategies/SOURCE.c, with `const struct strategy
// strategy_SOURCE`, and one row in generator/lists/lists.lua with `source = "SOURCE"`. All strategies of a
// backend share the check against the reference (calls/cell_check.c) and the physical bound
// (measure/harness.c).
#ifndef BENCH_STRATEGY_H
#define BENCH_STRATEGY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lists.h"

struct group;

// The traffic of one rank, in elements: it sends sent[r] elements to rank r, from send_at[r] of the input,
// and receives received[r] elements from it, to receive_at[r] of the output. `largest` is the most that any
// rank sends to any other one, the same on all ranks.
struct traffic {
    size_t send_elements, receive_elements; // all of the input and of the output
    size_t sent[MAX_RANKS], send_at[MAX_RANKS], received[MAX_RANKS], receive_at[MAX_RANKS];
    size_t largest;
};

// One call of one rank. All memory belongs to the caller. `traffic` describes all ops but the allreduce,
// which have no fusion: an allgather sends all of the input to every rank, a broadcast sends that of rank
// `root`; a reducescatter sums the elements received from all ranks to the beginning of the output.
//
// The arrays of an allreduce are row-major [num_tokens, hidden_size]. With the sum of `input` over the ranks,
//   FUSION_NONE writes the sum to `out`;
//   other fusions write r = round(sum + residual) to `residual_out`, and y = round(r * rsqrt(mean(r^2) +
//   epsilon) * gamma) of each row to `out`, or the codes of y: FP8 one byte, y / scale in e4m3; NVFP4 two
//   codes a byte, with a scale per 16 elements in `block_scales`, and `scale` as the global scale.
struct call {
    enum op op;
    const struct traffic *traffic; // NULL for an allreduce
    int root;
    void **plan; // where a strategy may keep its plan for this shape; NULL: nowhere
    enum dtype dtype;
    enum fusion fusion;
    size_t num_tokens;
    size_t hidden_size;
    bool is_size_alone; // a message size without a shape, given as one token
    const void *input;
    const void *residual;
    const void *gamma; // [hidden_size]
    void *residual_out;
    void *out;
    uint8_t *block_scales;
    void *norm_out;   // room for the rounded norm that is quantised; NULL: none
    bool writes_norm; // the kernel writes it there, for the check
    bool captured;    // into a graph
    float epsilon;
    float scale;
};

// The elements of the larger of this rank's input and output.
static inline size_t call_elements(const struct call *call) {
    return call->num_tokens * call->hidden_size;
}

static inline size_t call_bytes(const struct call *call) {
    return call_elements(call) * dtype_sizes_bytes[call->dtype];
}

enum { REASON_SIZE = 160, MAX_CANDIDATES = 192, MAX_IN_A_REQUEST = 62 };

struct candidate;

struct strategy {
    // Why this call is not supported, or NULL. The same on all ranks.
    const char *(*supports)(const struct group *group, const struct call *call);
    // Collective. Makes the state of one rank. -1: the strategy is unavailable; `reason` is the same on all
    // ranks.
    int (*setup)(const struct candidate *candidate, struct group *group, void **state,
                 char reason[REASON_SIZE]);
    // Collective. Returns when this rank's results are complete; on a GPU when the work is enqueued on its
    // stream. -1: see group_failure.
    int (*run)(void *state, const struct call *call);
    // Collective. Frees the state.
    void (*teardown)(void *state);
    // Collective, before the first call of a cell; NULL: nothing to prepare. Not 0: the strategy cannot run
    // the call; `reason` is the same on all ranks.
    int (*prepare)(void *state, const struct call *call, char reason[REASON_SIZE]);
};

// How a sum is rounded: at every step, in the data type; or only at the end, and added in fp32: correctly, or
// to any of its two neighbours in the data type (faithfully).
enum sum_rounding { SUM_NATIVE, SUM_FP32, SUM_FAITHFUL };

// Where the ranks of a strategy may be: on any nodes, on one node, or only on several.
enum node_span { SPAN_ANY, SPAN_NODE, SPAN_NODES };

// A strategy with its parameters, by its name in rows and tables.
struct candidate {
    const char *name;
    const struct strategy *strategy;
    bool accumulates_fp32;    // sums in fp32, in rank order with the same bits on all ranks unless
                              // bits_may_vary; else rounds at every step
    unsigned ops;             // a mask
    int ompi_algorithms[OPS]; // 0: the library's choice
    const char *ompi_component;
    const char *mpich_algorithm;
    const struct plugin_candidate *plugin; // NULL: of the bench itself; see plugin_loader/plugins.h
    bool bits_may_vary;                    // it sums in no fixed order
    bool adds_in_switch;                   // which rounds to a neighbour of the sum
    bool is_optional;                      // runs only if it is requested by name
    enum node_span span;
    const void *detail; // further parameters, of the backend's own type
};

static inline bool candidate_does(const struct candidate *candidate, enum op op) {
    return (candidate->ops >> op & 1) != 0;
}

static inline bool candidate_spans(const struct candidate *candidate, int nodes) {
    return candidate->span == SPAN_ANY || (candidate->span == SPAN_NODES) == (nodes > 1);
}

static inline enum sum_rounding candidate_rounding(const struct candidate *candidate) {
    if (!candidate->accumulates_fp32) return SUM_NATIVE;
    return candidate->adds_in_switch ? SUM_FAITHFUL : SUM_FP32;
}

// All candidates of the host backend, in the order of the list, then those of plug-ins.
extern struct candidate host_candidates[MAX_CANDIDATES];
extern int host_candidate_count;

#endif
