// GEMMs on a processor, by OpenBLAS in fp32: on most processors it has no products of smaller types. Elements
// of those are widened before and results rounded afterwards, by the computing thread and within its time.
#ifndef BENCH_WORKLOAD_MULTIPLY_H
#define BENCH_WORKLOAD_MULTIPLY_H

#include "libraries/blas.h"
#include "program.h"

struct multiplier {
    const struct blas *blas;
    float *a, *b, *c; // for the largest operands that are not floats; NULL: all operands are
};

// -1: out of memory; do not close it then.
int multiplier_open(struct multiplier *multiplier, const struct blas *blas, const struct program *program);
void multiplier_close(struct multiplier *multiplier);

// Returns when the result is in `gemm->c`.
void multiplier_run(const struct multiplier *multiplier, const struct gemm *gemm);

// Convert `count` elements of this type to floats, and floats to such elements, rounded to nearest even.
void elements_widen(enum dtype dtype, const void *elements, float *floats, size_t count);
void elements_narrow(enum dtype dtype, const float *floats, void *elements, size_t count);

#endif
