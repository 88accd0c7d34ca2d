// One cell to be measured: its data on one rank, and the truth about the result.
//
// Data differ from rank to rank and from call to call: a cell holds a few rows more than a call has, and call
// n reads its rows from a place that moves with n. The reference is computed once for all these rows, in
// float64.
#ifndef BENCH_CELL_H
#define BENCH_CELL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "elements/strategy.h"
#include "elements/traffic.h"

enum {
    MAX_SHIFTS = 8,
    CELL_STRIDE_ELEMENTS = 64, // between the data of calls, where there are no rows
};

// num_tokens * hidden_size elements are those of the larger one of a rank's input and output; see
// elements/traffic.h.
struct shape {
    enum dtype dtype;
    enum fusion fusion;
    size_t num_tokens;
    size_t hidden_size; // of a size without tokens: all of its elements, and one token
    bool is_size_alone;
    enum op op;
    uint64_t splits; // of an alltoallv; see elements/traffic.h
};

struct cell {
    struct shape shape;
    int rank, ranks;
    uint32_t seed;
    struct traffic traffic;              // of ops but the allreduce
    size_t input_elements, out_elements; // of one call
    size_t shifts;                       // calls that differ in their data
    size_t stride;                       // elements from one call's data to the next one's
    unsigned char *input, *residual, *gamma;
    unsigned char *residual_out, *out, *block_scales;
    size_t residual_out_bytes, out_bytes, block_scales_bytes;
    double *sum;    // over ranks, of all that this rank gets of it; NULL for ops without a sum
    void *norm_out; // the rounded norm that was quantised, where a backend has it, and frees it; else NULL
};

// Why no strategy can do this shape, or NULL.
const char *shape_refusal(const struct shape *shape);

// The same for so many ranks.
const char *shape_refusal_of_ranks(const struct shape *shape, int ranks);

// Fills the cell for one rank of `ranks`; ranks with equal `seed` fit together. -1: out of memory, and
// nothing is held.
int cell_open(struct cell *cell, const struct shape *shape, int rank, int ranks, uint32_t seed);
void cell_close(struct cell *cell);

// What the arrays of an open cell take.
size_t cell_bytes(const struct shape *shape, int rank, int ranks);

// Call number `shift`, below cell->shifts. The call points into the cell.
struct call cell_call(const struct cell *cell, size_t shift);

// Fills the results with ones, which no right result is full of.
void cell_poison(struct cell *cell);

// A hash of all results.
uint64_t cell_hash(const struct cell *cell, uint64_t (*hash)(const void *, size_t));

// The same with every -0 as +0, which it makes of them: equal for results that are equal as numbers.
uint64_t cell_bits(struct cell *cell, uint64_t (*hash)(const void *, size_t));

#endif
