// Data of which every sum is exact, for many ops at once: one array of random numbers, small enough that sums
// over ranks are not rounded in any order. Each rank's input is a window of it, so that a call needs no new
// data, and every bit of the right result is known. The numbers repeat after about 16000, so that a check
// reads them from a core's own cache.
#ifndef BENCH_EXACT_DATA_H
#define BENCH_EXACT_DATA_H

#include <stdbool.h>

#include "elements/kernels.h"

enum { POOL_DATA_SETS = 8 };

struct pool {
    enum dtype dtype;
    int ranks;
    unsigned char *data, *addends; // the array; that of ops that sum, which has zeros if there are many ranks
    unsigned char *sums;           // of the addends over the ranks, for one period
};

// For calls of up to `elements` elements. -1: out of memory. A pool of zeros may be closed.
int pool_open(struct pool *pool, enum dtype dtype, size_t elements, int ranks, const struct kernels *kernels);
void pool_close(struct pool *pool);

// The input of `rank` in the call of data set `data_set`, below POOL_DATA_SETS, of an op; page-aligned.
const void *pool_input(const struct pool *pool, enum op op, int rank, size_t data_set);

// Writes the right contents of call.out to `out`.
void pool_expect(const struct pool *pool, const struct call *call, int rank, size_t data_set, void *out);

// Whether call.out is right on rank `rank`; without an epilogue.
bool pool_is_right(const struct pool *pool, const struct call *call, int rank, size_t data_set);

#endif
