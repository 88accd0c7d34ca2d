// Losses of strategies over a bin: all shapes that a reader's lookup sends to one cell.
#ifndef GENTABLES_BINS_H
#define GENTABLES_BINS_H

#include <stdbool.h>

#include "table/grid.h"

// Times of one plane of a table: levels[strategy][hidden size][tokens] are log2 of microseconds; NAN: the
// strategy has no time.
struct plane_levels {
    const double *levels;
    size_t strategies;
    const struct axis *hidden_sizes, *num_tokens;
};

// A measured shape that is not in the grid, and the cell to which the lookup sends it.
struct shape_levels {
    const double *levels;  // by strategy
    size_t hidden, tokens; // the cell of its lookup
    uint32_t hidden_size, num_tokens;
};

// A shape of a bin, or of the workload, and its frequency. Its place is given by the cell of its lookup and
// by shares of the distances from the cell's sizes to their neighbours: -0.5 is halfway to the smaller size,
// 1 is the larger size.
struct bin_shape {
    size_t hidden, tokens;
    double hidden_share, tokens_share, weight;
    const double *levels; // by strategy, if the shape was measured; NULL: interpolated between cells
};

// Loss of a strategy in a bin, as shares of the best time; INFINITY: it has no time at the cell's shape.
struct loss {
    double expected;
    double worst;      // at the worst shape; if launches are known, the 95 % quantile
    double confidence; // probability that it loses at most 2 %; NAN: unknown
};

// The indices of the sizes of an axis that share a bin with the one at `at`: only that one or, for powers of
// two, all sizes below the next power.
struct bins_span {
    size_t first, last;
};
struct bins_span bins_span_of(enum lookup lookup, const struct axis *axis, size_t at);

// The nodes of the part of a bin that begins at a size of an axis: shares as in struct bin_shape, with their
// weights; and the length of the part, in octaves.
enum { BIN_NODES_MAX = 3 };
struct bin_nodes {
    struct bins_span span; // the sizes of its bin
    double length, share[BIN_NODES_MAX], weight[BIN_NODES_MAX];
    size_t count;
};

// The nodes of each size of an axis, in memory that the caller frees; NULL: out of memory. The lookup sends
// sizes above the largest one to it: its bin is taken to reach as far up as down. `below`: the same for sizes
// below the smallest one.
struct bin_nodes *bins_nodes(enum lookup lookup, const struct axis *axis, bool below);

// The facts of a plane's bins, in addition to its levels.
struct bins {
    enum lookup lookup;
    const struct bin_nodes *across, *along; // of the hidden sizes and of the token counts
    const struct shape_levels *extra;       // measured shapes outside of the grid
    size_t extra_count;
    const struct bin_shape *workload; // none: all shapes of a bin have equal weight
    size_t workload_count;
};

// Calls use(context, shape) for each shape of the cell's bin. If the workload has shapes in the bin, these,
// with their weights. Else shapes that stand for the whole bin, uniform in log2 of the sizes: the nodes of
// the trapezoid rule (middle and borders), and measured shapes in the bin, with the weight of a corner.
void bins_each_shape(const struct plane_levels *plane, const struct bins *bins, size_t hidden, size_t tokens,
                     void *context, void use(void *, const struct bin_shape *));

// The share of the distance from the size at index `at` of an axis to its neighbour at which `value` lies, as
// in struct bin_shape; 0 beyond the first and the last size.
double bins_share_of(const struct axis *axis, size_t at, uint32_t value);

// log2 of the size at `share` of the distance from the size at index `at` of an axis to its neighbour.
double bins_log2_size(const struct axis *axis, size_t at, double share);

// Computes losses[strategy], the loss of each strategy in the bin of the cell, from the levels alone. Levels
// between two sizes, and beyond the last one, are interpolated linearly in log2 time over log2 size. If a
// neighbour has no time, the cell's own level is used.
void bins_losses(const struct plane_levels *plane, const struct bins *bins, size_t hidden, size_t tokens,
                 struct loss *losses);

#endif
