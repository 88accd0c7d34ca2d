// A place: buffer_memory.c has its data, and timing.c times calls on them.
#ifndef BENCH_CUDA_BUFFER_MEMORY_H
#define BENCH_CUDA_BUFFER_MEMORY_H

#include "candidate.h"
#include "cell_buffers.h"

enum { MOST_GRAPHS = 1024 };

// What is timed: a candidate; or, without one, a copy of the input, a launch of `empty` shape, or nothing.
struct work {
    const struct candidate *candidate;
    void *state;
    const struct grid *empty;
    bool is_nothing;
    bool writes_norm; // for the check, which costs time
};

// Slots of a place, one for each call that is timed at once.
struct span {
    int first, calls;
};

struct graph {
    struct work work;
    size_t shift;
    struct span span;
    CUgraphExec exec;
};

// Offsets of arrays in the arena, the same on all ranks.
struct layout {
    size_t input, residual, gamma, slots;             // offsets
    size_t out, residual_out, norm_out, block_scales; // within a slot
    size_t slot_bytes, norm_bytes;
    size_t larger; // in a slot: the buffer of a reducescatter in place; the output is a part of it
};

struct place {
    struct device *device;
    struct cell *cell;
    enum mode mode;
    struct layout layout;
    CUdeviceptr base;
    int slots;
    bool is_amid; // the last sample's results are inside the larger buffer
    CUdeviceptr hashes;
    void *norm;                 // of a slot, for the check
    bool writes_norm, has_norm; // the next sample; the last one
    uint64_t known_hashes[MAX_SLOTS];
    bool hashes_are_enqueued, hashes_are_known; // on the GPU; on the host
    struct grid grid_of_floor;
    uint64_t begun_ns;    // when the host began to enqueue what is timed
    bool is_late;         // it took longer than the delay
    bool was_never_early; // on some rank, of all tries at what was timed last
    bool has_no_slope;    // what was timed last: no try at it gave a time above zero on all ranks
    int graph_count;
    struct graph graphs[MOST_GRAPHS];
    struct place *next; // of those that are open
};

static inline bool place_is_chain(enum mode mode) {
    return mode == MODE_GRAPH || mode == MODE_COLD_GRAPH;
}

static inline size_t place_input_bytes(const struct cell *cell) {
    return cell->input_elements * dtype_sizes_bytes[cell->shape.dtype];
}

static inline struct span place_all_slots(const struct place *place) {
    return (struct span){0, place->slots};
}

// Enqueues the hashes of these slots of a place in the stream of `by`.
bool place_enqueue_hashes(const struct place *place, struct device *by, struct span span);

// Enqueues the poison for the results in these slots in the stream of `by`; large arrays get it at both ends.
bool place_poison_slots(const struct place *place, struct device *by, struct span span);

// Destroys the graphs that the place has captured.
void place_drop_graphs(struct place *place);

#endif
