// The buffers of a cell: buffer_memory.c has their data, and timing.c times calls on them.
#ifndef BENCH_CUDA_BUFFER_MEMORY_H
#define BENCH_CUDA_BUFFER_MEMORY_H

#include "candidate.h"
#include "cell_buffers.h"

enum { MOST_GRAPHS = 1024 };

// The timed work: a candidate; or, without one, a copy of the input, a launch of `empty` shape, or nothing.
struct timed_work {
    const struct candidate *candidate;
    void *state;
    const struct grid *empty;
    bool is_nothing;
    bool writes_norm; // for the check, which costs time
};

// Consecutive slots, one for each call that is timed at once.
struct slot_range {
    int first, calls;
};

struct graph {
    struct timed_work work;
    size_t data_set;
    struct slot_range range;
    CUgraphExec exec;
};

// Offsets of arrays in the arena, the same on all ranks.
struct buffer_offsets {
    size_t input, residual, gamma, slots;             // offsets
    size_t out, residual_out, norm_out, block_scales; // within a slot
    size_t slot_bytes, norm_bytes;
    size_t larger; // in a slot: the buffer of a reducescatter in place; the output is a part of it
};

struct cell_buffers {
    struct device *device;
    struct cell *cell;
    enum mode mode;
    struct buffer_offsets offsets;
    CUdeviceptr base;
    int slots;
    bool is_inside_larger; // the last sample's results are inside the larger buffer
    CUdeviceptr hashes;
    void *norm;                 // of a slot, for the check
    bool writes_norm, has_norm; // the next sample; the last one
    uint64_t known_hashes[MAX_SLOTS];
    bool hashes_are_enqueued, hashes_are_known; // on the GPU; on the host
    struct grid grid_of_floor;
    uint64_t begun_ns;    // when the host began to enqueue the timed work
    bool is_late;         // it took longer than the delay
    bool was_never_early; // on some rank, in all tries at the last timed work
    bool has_no_slope;    // no try at the last timed work gave a time above zero on all ranks
    int graph_count;
    struct graph graphs[MOST_GRAPHS];
    struct cell_buffers *next; // of those that are open
};

static inline bool mode_is_chain(enum mode mode) {
    return mode == MODE_GRAPH || mode == MODE_COLD_GRAPH;
}

static inline size_t cell_input_bytes(const struct cell *cell) {
    return cell->input_elements * dtype_sizes_bytes[cell->shape.dtype];
}

static inline struct slot_range buffers_all_slots(const struct cell_buffers *buffers) {
    return (struct slot_range){0, buffers->slots};
}

// Enqueues the hashes of these slots in the stream of `by`.
bool buffers_enqueue_hashes(const struct cell_buffers *buffers, struct device *by, struct slot_range range);

// Enqueues the poison for the results in these slots in the stream of `by`; large arrays get it at both ends.
bool buffers_poison_slots(const struct cell_buffers *buffers, struct device *by, struct slot_range range);

// Destroys the graphs that were captured with these buffers.
void buffers_drop_graphs(struct cell_buffers *buffers);

#endif
