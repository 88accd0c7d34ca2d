// What a table is made from, beside rows, and by which rules: the options of core.choose's select.
#ifndef GENTABLES_SELECT_OPTIONS_H
#define GENTABLES_SELECT_OPTIONS_H

#include "table/table.h"

struct lua_State;

// A time that was not measured, but follows from others, and their placement.
struct derived_time {
    struct cell_key key;
    double time_us;
    uint8_t strategy, placement;
};

// A shape of the workload, and its frequency, in any unit.
struct workload_shape {
    uint32_t hidden_size, num_tokens;
    double weight;
};

struct selection {
    bool may_win[NAMES_MAX];           // by strategy
    bool loopback;                     // whether loopback rows compete
    bool least;                        // of repeated rows the least counts; else they are an error
    enum lookup lookup;                // how the reader finds a cell
    double regret;                     // what a cell may lose for the sake of fewer borders, as a share
    uint8_t same_bits_as;              // only strategies with the bits of this one may win; NAME_NONE: any
    bool is_stable;                    // each row of token counts keeps to one class of equal bits
    struct table *stable_as;           // the table with these classes; NULL: the rows decide
    struct table *incumbent;           // keeps the choices that hardly lose; NULL: none
    struct table *judged[2];           // their choices' losses are wanted, too; NULL: none
    const struct cell_key *more_cells; // cells that the table has beside those of the rows
    size_t more_cell_count;
    bool only_more_cells; // between these, no others: rows there count for the bins that they lie in
    const struct derived_time *derived;
    size_t derived_count;
    const struct workload_shape *workload; // none: all shapes alike
    size_t workload_count;
};

// Reads the options in the table at the absolute stack index `options`, but for the tables, into `selection`.
// What the selection points to stays on the stack, above the options. Raises if an option is wrong.
void select_options_take(struct lua_State *lua, int options, const struct lists *lists,
                         struct selection *selection);

#endif
