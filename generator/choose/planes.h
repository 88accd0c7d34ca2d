// One plane of a table (one block and fusion) laid out for choosing: one array with the measured, derived and
// predicted levels of all its strategies, the measured shapes between its cells, and the shapes of the
// workload.
#ifndef GENTABLES_PLANES_H
#define GENTABLES_PLANES_H

#include "bins.h"
#include "select_options.h"

enum { NO_ROW = UINT32_MAX };

// The rows of every cell, as lists: first[cell] is a row, next[row] another one of its cell. Rows of shapes
// outside of the grid are in `elsewhere`, in the order of rows.
struct chains {
    uint32_t *first, *next, *elsewhere;
    size_t elsewhere_count;
};

// The data from which a table is made.
struct inputs {
    const struct rows *rows;
    const struct selection *selection;
    const struct lists *lists;
    uint8_t loopback; // the index of that name in the list of placements
    struct chains chains;
};

// Enters every row into the list of its cell in of->chains, and counts those that do not compete in the
// table. Of repeated rows, with the selection's `least` the one with the least time is entered; else returns
// false with the problem. The caller owns the arrays: first[cells], next[rows], and `elsewhere` for the rows
// without a cell.
bool chains_fill(struct inputs *of, struct table *table, struct problem *problem);

struct plane {
    const struct inputs *of;
    const struct grid_block *block;
    size_t fusion, first_cell, cells;
    uint8_t strategies[NAMES_MAX], index_of[NAMES_MAX];
    size_t strategy_count;
    bool has_predicted;
    double *levels; // [strategy][cell]
    uint8_t derived_placement;
    uint32_t *row_of; // [strategy][cell], or NO_ROW
    const struct derived_time *
        *predicted; // [strategy][cell], or NULL; NULL: no time of the plane is predicted
    bool *untried;  // [strategy][cell]: no level, because the sweep did not try it there
    struct shape_levels *extra;
    double *extra_levels; // [extra][strategy]
    uint32_t *extra_rows; // the same; NO_ROW: none
    struct bin_shape *workload;
    struct bin_nodes *across, *along;
    struct bins bins;
};

// Lays out the plane of `fusion`, an index in the block. False: out of memory. Call plane_free in either
// case.
bool plane_make(struct plane *plane, const struct inputs *of, const struct grid_block *block, size_t fusion);

// Removes the levels and rows of a strategy, as if it had not been measured.
void plane_drop(struct plane *plane, size_t strategy);

void plane_free(struct plane *plane);

#endif
