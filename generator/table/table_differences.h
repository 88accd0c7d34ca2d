// The cells with different choices in two tables.
#ifndef GENTABLES_TABLE_DIFFERENCES_H
#define GENTABLES_TABLE_DIFFERENCES_H

#include "table.h"

// A cell with different choices. NULL: that table does not have the cell.
struct difference {
    struct cell_key key;
    const struct cell *old, *new;
};

// Calls `found` for each cell with different choices, those of `old` first. An unmeasured cell equals a
// missing one. Returns the number of cells that have a choice in both tables.
size_t table_differences(struct table *old, struct table *new,
                         void (*found)(void *context, const struct difference *difference), void *context);

#endif
