// What a strategy loses over the bin of shapes that a reader's lookup sends to one cell.
#ifndef GENTABLES_BINS_H
#define GENTABLES_BINS_H

#include <stddef.h>

// How a reader finds the cell of a shape, on either axis.
enum lookup {
    LOOKUP_NEAREST, // the size that is nearest as a ratio: the C header
    LOOKUP_FLOOR,   // the largest that is not above it: TensorRT-LLM's floor of log2
    LOOKUP_EXACT,   // the shape itself and no other
};

// Times of one plane of a table: levels[strategy][hidden size][tokens] are log2 of microseconds, NAN where a
// strategy has none.
struct plane {
    const double *levels;
    size_t strategies, hidden_sizes, num_tokens;
};

// One more shape of which all strategies' levels are known: where it lies in the grid's numbers, such as 1.5
// for halfway between the second and third size.
struct shape_levels {
    const double *levels; // by strategy
    size_t hidden, tokens; // the cell that answers for it
};

struct loss {
    double expected, worst; // as shares of the best time; INFINITY where the strategy cannot do the cell's shape
};

// What each strategy loses in the cell, into losses[strategy]. The levels between two sizes are those of a line
// in log2 time over log2 size; where a neighbour has no time, the cell's own count. All shapes of a bin count
// alike, as a ratio: the trapezoid rule over its middle and borders. Shapes of `extra` count as its corners do.
void bins_losses(const struct plane *plane, enum lookup lookup, size_t hidden, size_t tokens,
                 const struct shape_levels *extra, size_t extra_count, struct loss *losses);

#endif
