// Which strategies give equal bits in a slice of rows: a TP size, dtype, op, mode and fusion. The
// choices of a table of one class and the classes in the report both use this.
#ifndef GENTABLES_NUMERICS_H
#define GENTABLES_NUMERICS_H

#include "cell_losses.h"
#include "rows/rows.h"

enum bits_relation { BITS_UNKNOWN, BITS_EQUAL, BITS_DIFFERENT };

// By strategy. The relation is symmetric; a strategy with varying bits differs from all, itself included.
struct numerics {
    uint8_t relation[NAMES_MAX][NAMES_MAX];
    bool known[NAMES_MAX], varies[NAMES_MAX];
};

// Two strategies are equal if their bits are equal at every shape of the slice at which the bits of both are
// known, on the table's grid or off it; there must be at least one such shape. A quantiser hides differences
// of the sum, so in its fusion two strategies also differ if they differ in the fusion that it quantises.
// Rows of the placement `barred` (NAME_NONE: none) do not count. False: out of memory.
bool numerics_relate(const struct rows *rows, struct slice_key slice, uint8_t barred,
                     const struct lists *lists, struct numerics *numerics);

// The classes of equal bits: class_of[strategy] is the first member of its class. A class has the strategies
// that equal its first member and differ from no other member. Its first member is the first one in the order
// of the list; the class of `first` (NAME_NONE: none) begins with that strategy. A strategy with unknown or
// varying bits is a class of its own.
void numerics_classes(const struct numerics *numerics, uint8_t first, uint8_t class_of[NAMES_MAX]);

// Sets class_of_row[hidden size] for each row of the plane: the class in `class_of` (see numerics_classes)
// with most of the choices in `earlier`; if several have as many, the first in the list. `earlier` has a
// strategy or NAME_NONE for each cell of the whole table; NULL: no earlier table. In a table by powers of two
// the choices of all hidden sizes that share a bin count. Without such a choice: the class with times in the
// most cells and, of these, with the least total expected loss. NAME_NONE: no strategy has a time. Returns
// false if memory is short.
bool stable_class_of_rows(const struct plane *plane, const struct evidence *evidence, const uint8_t *earlier,
                          const uint8_t class_of[NAMES_MAX], uint8_t *class_of_row);

#endif
