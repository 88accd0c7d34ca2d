// The cells of a table, and their order. A block has one number of nodes, TP size, dtype, op, mode and
// splits; its cells are all combinations of its fusions, hidden sizes and token counts, with or without rows.
// Cells are numbered by block (nodes, then TP size, dtype, op, mode, as the lists have them, splits, shapes
// before sizes without a shape), fusion, hidden size, tokens.
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
    uint16_t world_size, nodes;
    uint8_t dtype, op, mode;
    bool has_no_shape;                                  // it has sizes only; see HIDDEN_SIZE_NONE
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

// Adds a cell. A zeroed grid is an empty one. False: out of memory.
bool grid_add(struct grid *grid, const struct cell_key *key);

// The index of the block of this key, or the number of blocks; before grid_close.
size_t grid_block_of(struct grid *grid, const struct cell_key *key);

// Numbers the cells, after the last grid_add. False, with the problem: there are too many.
bool grid_close(struct grid *grid, struct problem *problem);

// The number of the cell, or GRID_NO_CELL. Not for several threads at once.
size_t grid_find(struct grid *grid, const struct cell_key *key);

// The number of the cell of this key in a block, of its fusion at index `fusion`; or GRID_NO_CELL.
size_t grid_cell_number(const struct grid_block *block, size_t fusion, const struct cell_key *key);

// Whether a cell is in a block, if that has its fusion, hidden size and tokens.
bool grid_block_is_of(const struct grid_block *block, const struct cell_key *key);

// The fields of a block in the keys of its cells; the other fields are 0.
struct cell_key grid_block_key(const struct grid_block *block);

// The key of a cell.
struct cell_key grid_key(const struct grid *grid, size_t cell);

// How a reader finds the cell of a shape, on either axis.
enum lookup {
    LOOKUP_NEAREST, // the nearest size, as a ratio: the C header
    LOOKUP_FLOOR,   // the largest size up to it: our header for TensorRT-LLM
    LOOKUP_LOG2,    // the largest power of two up to it, and no other size: TensorRT-LLM's own table
    LOOKUP_EXACT,   // the same size only
};

// The geometric mean of two numbers, which are not 0, rounded down. Numbers up to it are at least as near to
// the lower one as to the upper one, as ratios.
uint64_t grid_border(uint64_t lower, uint64_t upper);

// The index of the size on an axis to which the lookup sends `value`. NEAREST, and EXACT: the nearest size;
// the smaller one of two that are equally near. FLOOR: the first size for values below all. LOG2: as
// FLOOR, if the same power of two is the largest one up to both; else GRID_NO_CELL.
size_t grid_answering(const struct axis *axis, uint32_t value, enum lookup lookup);

// The largest power of two up to `value`, which is not 0.
uint32_t grid_power_below(uint32_t value);

void grid_free(struct grid *grid);

#endif
