// The canonical table: per cell the winner, its margin over the runner-up, its confidence and regret, or
// nothing where nothing was measured. Made from rows, written as CSV, read back, looked up.
#ifndef GENTABLES_TABLE_H
#define GENTABLES_TABLE_H

#include "choose/bins.h"
#include "choose/grid.h"

// NAN where there is no such number.
struct cell {
    double time_us, margin, confidence, regret;
    double bound_us;             // the physical bound; not in the CSV
    uint8_t strategy, runner_up; // NAME_NONE: unmeasured; no runner-up
    uint8_t placement;           // of the winner's row; not in the CSV
    bool derived;                // the winner was not measured here: its time is from shapes around it
};

extern const struct cell table_unmeasured;

struct table {
    struct grid grid;
    struct cell *cells; // by the grid's numbers
    // Rows that did not compete, by the reason.
    size_t loopback_rows, rows_of_others[NAMES_MAX];
};

// A time that was not measured, but follows from others; `spread` is its standard error, in log2, `noise` how
// much of it is noise of what it follows from, `placement` that of the others.
struct derived_time {
    struct cell_key key;
    double time_us, spread, noise;
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
    struct table *incumbent;           // whose choices stay within noise; NULL: none
    const struct cell_key *more_cells; // cells that the table has beside those of the rows
    size_t more_cell_count;
    bool only_more_cells; // between these, no others: rows there count for the bins that they lie in
    const struct derived_time *derived;
    size_t derived_count;
    const struct workload_shape *workload; // none: all shapes alike
    size_t workload_count;
};

// The winners of all cells. NULL if a cell and strategy has two rows (unless `least` is set), or if there are
// too many cells. The caller frees it. In choose.c.
struct table *table_select(const struct rows *rows, const struct selection *selection,
                           const struct lists *lists, struct problem *problem);

// The table as CSV. NULL where memory runs out; the caller frees it.
char *table_text(const struct table *table, const char *arch, const struct lists *lists, size_t *size);

// Reads what table_text wrote; the arch goes to `arch`. NULL where the file is not right.
struct table *table_read(const char *path, const struct lists *lists, char arch[64], struct problem *problem);

// The same of a text; `path` is for messages.
struct table *table_parse(const char *path, const char *text, size_t size, const struct lists *lists,
                          char arch[64], struct problem *problem);

// The cell, or NULL where the table has none such.
const struct cell *table_find(struct table *table, const struct cell_key *key);

void table_free(struct table *table);

#endif
