// The options of core.choose's select: the data from which a table is made, in addition to rows, and the
// rules.
#ifndef GENTABLES_SELECT_OPTIONS_H
#define GENTABLES_SELECT_OPTIONS_H

#include "table/table.h"

struct lua_State;

// A derived time, and the placement of the rows from which it was derived. A time predicted from other
// numbers of nodes has an interval; else its ends are NAN.
struct derived_time {
    struct cell_key key;
    double time_us, low_us, high_us;
    uint8_t strategy, placement;
    bool predicted;
};

// A strategy that may do a cell, and has no time at it or near it.
struct untried_strategy {
    struct cell_key key;
    uint8_t strategy;
};

// A shape of the workload, and its frequency, in any unit.
struct workload_shape {
    uint32_t hidden_size, num_tokens;
    double weight;
};

struct selection {
    bool may_win[NAMES_MAX];           // by strategy
    bool loopback;                     // whether loopback rows compete
    bool least;                        // whether the least of repeated rows counts; else they are an error
    enum lookup lookup;                // how the reader finds a cell
    double regret;                     // the loss that a cell may have for fewer borders, as a share
    uint8_t dtype;                     // cells of other data types get no choice; NAME_NONE: all get one
    uint8_t same_bits_as;              // only strategies with the bits of this one may win; NAME_NONE: any
    bool is_stable;                    // each row of token counts keeps to one class of equal bits
    struct table *stable_as;           // the table with these classes; NULL: the rows decide
    struct table *incumbent;           // its choices stay if they lose hardly more than the best; NULL: none
    struct table *judged[2];           // the result has the losses of their choices; NULL: none
    const struct cell_key *more_cells; // cells of the table in addition to those of the rows
    size_t more_cell_count;
    bool only_more_cells; // rows between these make no cells, but count for their bins
    const struct derived_time *derived;
    size_t derived_count;
    const struct untried_strategy *untried; // they win nothing, but the losses of others count them
    size_t untried_count;
    const struct workload_shape *workload; // none: all shapes have equal weight
    size_t workload_count;
};

// Reads the options in the table at the absolute stack index `options`, but for the tables, into `selection`.
// What the selection points to stays on the stack, above the options. Raises if an option is wrong.
void select_options_take(struct lua_State *lua, int options, const struct lists *lists,
                         struct selection *selection);

#endif
