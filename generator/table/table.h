// The canonical table: for each cell the winner, its margin over the runner-up, its confidence and its
// losses, or nothing for unmeasured cells. It is written as CSV; choose.c makes it from rows.
#ifndef GENTABLES_TABLE_H
#define GENTABLES_TABLE_H

#include "grid.h"

// The states of a choice, as docs/glossary.md defines them. STATE_NONE: a choice of another program's table.
enum state { STATE_NONE, STATE_CERTAIN, STATE_TIE, STATE_UNCERTAIN, STATES };
extern const char *const table_state_names[STATES];

// Where the time of a choice is from: measured at the cell's shape, interpolated between shapes, or predicted
// from other numbers of nodes.
enum basis { BASIS_MEASURED, BASIS_DERIVED, BASIS_PREDICTED, BASES };

// A cell; NAN: there is no such number.
struct cell {
    double time_us, margin;
    double confidence, expected; // probability of a loss up to 2 % over the bin; mean loss, as a share
    double worst, worst_us;      // 95 % quantile of the loss as a share (not in the CSV), and as time
    enum state state;
    double bound_us;             // the physical bound; not in the CSV
    uint8_t strategy, runner_up; // NAME_NONE: unmeasured; no runner-up
    uint8_t placement;           // of the winner's row; not in the CSV
    enum basis basis;            // of the winner's time
    double low_us, high_us;      // the 95 % interval of a predicted time
};

extern const struct cell table_unmeasured;

struct table {
    struct grid grid;
    struct cell *cells; // by the grid's numbers
    double
        *judged[2]; // the same: expected losses of the choices of other tables, NAN unknown; NULL: no table
    // Rows that did not compete, by the reason.
    size_t loopback_rows, rows_of_others[NAMES_MAX];
};

// The table as CSV. NULL: out of memory. The caller frees it.
char *table_text(const struct table *table, const char *arch, const struct lists *lists, size_t *size);

// Reads a text that table_text wrote; the arch goes to `arch`, `path` is for messages. NULL, with the
// problem: the text has an error.
struct table *table_parse(const char *path, const char *text, size_t size, const struct lists *lists,
                          char arch[64], struct problem *problem);

// The cell; NULL: the table does not have it.
const struct cell *table_find(struct table *table, const struct cell_key *key);

void table_free(struct table *table);

#endif
