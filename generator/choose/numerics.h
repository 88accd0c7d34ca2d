// Which strategies give equal bits in a slice of rows: a TP size, dtype, op, mode and fusion. The
// choices of a table of one class and the classes in the report both use this.
#ifndef GENTABLES_NUMERICS_H
#define GENTABLES_NUMERICS_H

#include "rows/rows.h"

enum bits_relation { BITS_NEVER_TOLD, BITS_EQUAL, BITS_DIFFERENT };

// By strategy. The relation is symmetric; a strategy with varying bits differs from all, itself included.
struct numerics {
    uint8_t relation[NAMES_MAX][NAMES_MAX];
    bool told[NAMES_MAX], varies[NAMES_MAX];
};

// Two strategies are equal where their bits are equal at every shape of the slice, on the table's grid or off
// it, at which both are known; there must be at least one. A quantiser hides differences of the sum: in its
// fusion they differ, too, if they differ in the fusion that it quantises. Rows of the placement `barred`
// (NAME_NONE: none) do not count. False where memory runs out.
bool numerics_relate(const struct rows *rows, struct slice_key slice, uint8_t barred,
                     const struct lists *lists, struct numerics *numerics);

#endif
