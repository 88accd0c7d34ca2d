// Computes the results of a call from its sum. The sum comes in consecutive pieces; each piece is given as
// sources to add. Pieces need not end at the end of a row.
#ifndef BENCH_HOST_EPILOGUE_H
#define BENCH_HOST_EPILOGUE_H

#include <stdbool.h>

#include "elements/kernels.h"
#include "elements/strategy.h"

struct epilogue {
    const struct call *call;
    const struct kernels *kernels;
    bool streams;  // FUSION_NONE: stores of a single source go past the caches; call stream_end at the end
    size_t at;     // next element
    size_t column; // at % hidden_size, kept where rows matter
    float sum_of_squares; // of this row so far
};

// Begins at element `at`, which with a fusion must be the beginning of a row.
void epilogue_begin(struct epilogue *epilogue, const struct kernels *kernels, const struct call *call,
                    size_t at);

// Adds `n` sources of `count` elements each, in order, and advances by `count` elements.
void epilogue_consume(struct epilogue *epilogue, const void *const *sources, int n, size_t count);

#endif
