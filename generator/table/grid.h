// The cells of a table, and their order. A block is what has the same world size, dtype, op and mode; its
// cells are all of its fusions × hidden sizes × token counts, whether any row has them or not. Cells are
// numbered by block (world size, then dtype, op, mode, as the lists have them, splits, shapes before sizes
// without a shape), fusion, hidden size, tokens.
#ifndef GENTABLES_GRID_H
#define GENTABLES_GRID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/problem.h"
#include "rows/rows.h"

// Different numbers, none of them 0; ascending once the grid is closed.
struct axis {
    uint32_t *value;
    size_t count, capacity;
    struct axis_slot {
        uint32_t value, index;
    } * slots; // open addressing; a power of two of them, at most half of them used
    size_t slot_count;
};

struct grid_block {
    uint64_t splits;
    uint16_t world_size;
    uint8_t dtype, op, mode;
    bool has_no_shape;                                  // sizes alone; see HIDDEN_SIZE_NONE
    uint8_t fusion[NAMES_MAX], fusion_index[NAMES_MAX]; // by index, and back (NAME_NONE: not in the block)
    size_t fusion_count;
    struct axis hidden_sizes, num_tokens;
    size_t first_cell;
};

struct grid {
    struct grid_block *blocks;
    size_t block_count, cell_count;
    size_t recent; // the block of the last lookup
};

#define GRID_NO_CELL SIZE_MAX

// A zeroed grid is an empty one. False where memory runs out.
bool grid_add(struct grid *grid, const struct cell_key *key);

// The index of the block of this key, or the number of blocks; before grid_close.
size_t grid_block_of(struct grid *grid, const struct cell_key *key);

// After the last grid_add: numbers the cells. Fails where they are absurdly many.
bool grid_close(struct grid *grid, struct problem *problem);

// The number of the cell, or GRID_NO_CELL. Not for several threads at once.
size_t grid_find(struct grid *grid, const struct cell_key *key);

// The number of the cell of this key in a block, of its fusion at index `fusion`; or GRID_NO_CELL.
size_t grid_cell_number(const struct grid_block *block, size_t fusion, const struct cell_key *key);

// The key of a cell.
struct cell_key grid_key(const struct grid *grid, size_t cell);

// How a reader finds the cell of a shape, on either axis.
enum lookup {
    LOOKUP_NEAREST, // the size that is nearest as a ratio: the C header
    LOOKUP_FLOOR,   // the largest that is not above it: our header for TensorRT-LLM
    LOOKUP_LOG2,    // the power of two that is not above it, and no other size: TensorRT-LLM's own table
    LOOKUP_EXACT,   // the shape itself and no other
};

// The largest number with a square that is at most the product of two, which are not 0: numbers up to it are
// at least as near to the lower one as to the upper one, as ratios.
uint64_t grid_border(uint64_t lower, uint64_t upper);

// The index of the size on an axis that answers for `value`. The nearest: the smaller of two that are as
// near, and so where no lookup answers but for the shape itself. The floor: the first below all. Of log2: the
// last of those with the same power of two that is not above it; GRID_NO_CELL where there are none.
size_t grid_answering(const struct axis *axis, uint32_t value, enum lookup lookup);

// The largest power of two that is not above `value`, which is not 0.
uint32_t grid_power_below(uint32_t value);

void grid_free(struct grid *grid);

#endif
