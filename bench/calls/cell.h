// One cell to be measured: its data on one rank, and its results.
//
// Data differ between ranks and calls: a cell has a few more rows than a call, and call n reads its rows from
// an offset that moves with n. The check (cell_check.h) computes the reference, in float64.
#ifndef BENCH_CELL_H
#define BENCH_CELL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "elements/strategy.h"
#include "elements/traffic.h"

enum cell_array { CELL_INPUT, CELL_RESIDUAL, CELL_GAMMA, CELL_RESIDUAL_OUT, CELL_OUT, CELL_BLOCK_SCALES };

enum {
    CELL_ARRAYS = CELL_BLOCK_SCALES + 1,
    MAX_DATA_SETS = 8,
    CELL_STRIDE_ELEMENTS = 64, // between the data of calls without rows
};

static const float CELL_EPSILON = 1e-5f; // of norms

// The larger of a rank's input and output has num_tokens * hidden_size elements; see elements/traffic.h.
struct shape {
    enum dtype dtype;
    enum fusion fusion;
    size_t num_tokens;
    size_t hidden_size; // with is_size_alone: all elements, in one token
    bool is_size_alone;
    enum op op;
    uint64_t splits; // of an alltoallv; see elements/traffic.h
};

// Memory of cells that are open one after another: the first access to fresh memory takes longer than filling
// it. Each array has the size of the largest one so far. All zero at first.
struct cell_memory {
    void *arrays[CELL_ARRAYS];
    size_t bytes[CELL_ARRAYS];
};

void cell_memory_free(struct cell_memory *memory);

struct cell {
    struct shape shape;
    int rank, ranks;
    uint32_t seed;
    struct traffic traffic;              // of ops but the allreduce
    size_t input_elements, out_elements; // of one call
    size_t data_sets;                    // so many calls have different data
    size_t stride;                       // elements from one call's data to the next one's
    unsigned char *input, *residual, *gamma;
    unsigned char *residual_out, *out, *block_scales;
    size_t residual_out_bytes, out_bytes, block_scales_bytes;
    struct cell_memory *memory; // has the arrays; NULL: the cell itself has them
    void *norm_out; // the rounded norm that was quantised, if the backend provides it, which owns it; or NULL
};

// Why no strategy supports this shape, or NULL.
const char *shape_refusal(const struct shape *shape);

// The same for `ranks` ranks.
const char *shape_refusal_of_ranks(const struct shape *shape, int ranks);

// Fills the cell for one rank of `ranks`; all ranks need the same seed. -1: out of memory, and the cell is
// closed.
int cell_open(struct cell *cell, const struct shape *shape, int rank, int ranks, uint32_t seed);

// The same with its arrays in `memory`, which no other open cell uses; NULL: with arrays of its own.
int cell_open_in(struct cell_memory *memory, struct cell *cell, const struct shape *shape, int rank,
                 int ranks, uint32_t seed);

void cell_close(struct cell *cell);

// Consecutive elements of the results; whole rows if there is an epilogue.
struct cell_part {
    size_t first, count;
};

// Part `index` of the results, which are cut into `parts` parts of about the same size; some may be empty.
struct cell_part cell_part_of(const struct cell *cell, int index, int parts);

// The bytes of the arrays of an open cell.
size_t cell_bytes(const struct shape *shape, int rank, int ranks);

// The call of data set `data_set`, below cell->data_sets. The call points into the cell.
struct call cell_call(const struct cell *cell, size_t data_set);

// The exact sum over the ranks for an element of the results of that call.
double cell_sum(const struct cell *cell, size_t data_set, size_t element);

// Fills the results with ones, which no right result consists of.
void cell_poison(struct cell *cell);

// A hash of all results.
uint64_t cell_hash(const struct cell *cell, uint64_t (*hash)(const void *, size_t));

// Changes every -0 of the results to +0, and returns their hash: the same for results that are equal as
// numbers.
uint64_t cell_bits(struct cell *cell, uint64_t (*hash)(const void *, size_t));

#endif
