// From sums to the results of a call: takes the sum piece by piece, in order, as sources that are still to be
// added, and writes what the call asks for. Pieces need not end where rows end.
#ifndef BENCH_HOST_EPILOGUE_H
#define BENCH_HOST_EPILOGUE_H

#include <stdbool.h>

#include "elements/kernels.h"
#include "elements/strategy.h"

struct epilogue {
    const struct call *call;
    const struct kernels *kernels;
    bool streams;         // FUSION_NONE: what one source gives goes past the caches; end with stream_end
    size_t at;            // next element
    size_t column;        // at % hidden_size, kept where rows matter
    float sum_of_squares; // of this row so far
};

// Begins at element `at`; with a fusion that is the beginning of a row.
void epilogue_begin(struct epilogue *epilogue, const struct kernels *kernels, const struct call *call,
                    size_t at);

// Adds `n` sources of `count` elements each, in order, and goes `count` elements on.
void epilogue_consume(struct epilogue *epilogue, const void *const *sources, int n, size_t count);

#endif
