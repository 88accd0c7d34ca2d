// The rows of each slice, found in one pass over all rows. Files by message size need many slices of half a
// million rows.
#ifndef GENTABLES_SLICE_ROWS_H
#define GENTABLES_SLICE_ROWS_H

#include "rows/rows.h"

// Slices in the order of their first rows. The rows of slice i, in their order, are row[begin[i]] to
// row[begin[i + 1] - 1].
struct slice_rows {
    struct slice_key *keys;
    size_t count;
    size_t *begin; // count + 1
    uint32_t *row; // indices of rows
};

// False: out of memory. Call slice_rows_free in either case.
bool slice_rows_make(const struct rows *rows, struct slice_rows *of);
void slice_rows_free(struct slice_rows *of);

// The index of a slice; `count` if no row is of it.
size_t slice_rows_find(const struct slice_rows *of, struct slice_key key);

#endif
