// The arithmetic of the host strategies, compiled once per instruction set from
// templates/bench/kernels.c.tmpl, and chosen at run time. It is deterministic: the same input gives the same
// bits on every rank.
#ifndef BENCH_KERNELS_H
#define BENCH_KERNELS_H

#include <stddef.h>
#include <stdint.h>

#include "fusion.h"
#include "strategy.h"

// One row that is ready to be normalised. Arrays hold `hidden_size` elements of the kernel's dtype.
struct norm_row {
    const void *residual; // r, already rounded
    const void *gamma;    // weight of the norm
    void *out; // RESIDUAL_RMS_NORM: y; ...QUANT_FP8: codes, a byte each; ...NVFP4: two codes a byte
    uint8_t *block_scales; // NVFP4: base of the scales, in the swizzled layout
    size_t row;            // NVFP4: which row this is (the layout interleaves rows)
    size_t hidden_size;
    float sum_of_squares; // of r
    float epsilon;
    float scale; // FP8: y is divided by it; NVFP4: the global scale
};

// Sums `n` sources in rank order in fp32, rounds once: out[i] = round(sources[0][i] + sources[1][i] + ...).
// out may be one of the sources.
typedef void sum_kernel(void *out, const void *const *sources, int n, size_t count);

// residual_out[i] = round(sum of sources + residual[i]); returns the sum of the squares of what it wrote.
typedef float sum_residual_kernel(void *residual_out, const void *residual, const void *const *sources, int n,
                                  size_t count);

typedef void norm_kernel(const struct norm_row *row);

// Fills an array with the values of values.h.
typedef void fill_kernel(void *to, size_t count, uint32_t seed);

struct kernels {
    const char *isa;
    fill_kernel *fill[DTYPES];
    sum_kernel *sum[DTYPES][MAX_NODE_RANKS + 1]; // by number of sources
    sum_kernel *sum_many[DTYPES];                // of any number
    sum_residual_kernel *sum_residual[DTYPES][MAX_NODE_RANKS + 1];
    norm_kernel *norm[DTYPES][FUSIONS]; // NULL for FUSION_NONE
    uint64_t (*hash)(const void *data, size_t bytes);
    // Prefetches cache lines for writing: a hint for lines that this rank reads now and writes next.
    void (*claim)(const void *memory, size_t bytes);
    // Copies past the caches if the processor can. The data are visible to others once stream_end has
    // returned.
    void (*stream)(void *to, const void *from, size_t bytes);
    void (*stream_end)(void);
};

// Sums any number of sources.
static inline void kernels_sum(const struct kernels *kernels, enum dtype dtype, void *out,
                               const void *const *sources, int n, size_t count) {
    sum_kernel *sum = n <= MAX_NODE_RANKS ? kernels->sum[dtype][n] : kernels->sum_many[dtype];
    sum(out, sources, n, count);
}

// The best kernels that this processor runs; and those named `isa`, NULL if there are none or it cannot run
// them.
const struct kernels *kernels_best(void);
const struct kernels *kernels_find(const char *isa);

// All built kernels, up to a NULL; this processor may not run all of them.
extern const struct kernels *const kernels_all[];

#endif
