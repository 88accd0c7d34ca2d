// What a strategy loses over the bin of shapes that a reader's lookup sends to one cell.
#ifndef GENTABLES_BINS_H
#define GENTABLES_BINS_H

#include "table/grid.h"

// Times of one plane of a table: levels[strategy][hidden size][tokens] are log2 of microseconds, NAN where a
// strategy has none.
struct plane_levels {
    const double *levels;
    size_t strategies;
    const struct axis *hidden_sizes, *num_tokens;
};

// One more shape of which all strategies' levels are known: where it lies in the grid's numbers, such as 1.5
// for halfway between the second and third size.
struct shape_levels {
    const double *levels;  // by strategy
    size_t hidden, tokens; // the cell that answers for it
    uint32_t hidden_size, num_tokens;
};

// A shape of a bin, or of the workload, and its frequency: the cell of its lookup, and its distance from that
// cell's own sizes towards their neighbours: -0.5 is halfway to the smaller size, 1 the larger one.
struct bin_shape {
    size_t hidden, tokens;
    double hidden_share, tokens_share, weight;
    const double *levels; // by strategy, where the shape was measured; NULL: between those of cells
};

// What a strategy loses in a bin, as shares of the best time; INFINITY where it cannot do the cell's shape.
struct loss {
    double expected;
    double worst;      // at the worst shape or, where the launches are known, the 95 % quantile
    double confidence; // probability that it loses at most 2 %; NAN: unknown
};

// What is known of the bins of a plane beside its levels.
struct bins {
    enum lookup lookup;
    const struct shape_levels *extra; // measured shapes that are no cell
    size_t extra_count;
    const struct bin_shape *workload; // none: all shapes of a bin count alike
    size_t workload_count;
};

// The indices of the sizes of an axis that share a bin with the one at `at`: only that one or, for powers of
// two, all sizes below the next power.
struct bins_span {
    size_t first, last;
};
struct bins_span bins_span_of(enum lookup lookup, const struct axis *axis, size_t at);

// Calls use(context, shape) for each shape of the cell's bin: those that a workload has in the bin, with
// their weight; without any, all shapes of the bin alike, as a ratio: the trapezoid rule over its middle and
// borders, and measured shapes inside as much as its corners.
void bins_each_shape(const struct plane_levels *plane, const struct bins *bins, size_t hidden, size_t tokens,
                     void *context, void use(void *, const struct bin_shape *));

// How far `value` lies from the size at `at` of an axis towards its neighbour, as in struct bin_shape; 0
// beyond the first and the last.
double bins_share_of(const struct axis *axis, size_t at, uint32_t value);

// log2 of the size on an axis of `share` of the way from the one at `at` towards its neighbour.
double bins_log2_size(const struct axis *axis, size_t at, double share);

// What each strategy loses in the bin of the cell by the levels alone, into losses[strategy]. The levels
// between two sizes are those of a line in log2 time over log2 size, which goes on beyond the last; where a
// neighbour has no time, the cell's own counts.
void bins_losses(const struct plane_levels *plane, const struct bins *bins, size_t hidden, size_t tokens,
                 struct loss *losses);

#endif
