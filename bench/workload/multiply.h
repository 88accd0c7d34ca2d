// GEMMs on a processor: by OpenBLAS, which has products of floats everywhere and of smaller types hardly
// anywhere. So it computes in fp32 whatever their dtype: elements of smaller types are widened before, and
// results rounded to them behind, both by the thread that computes and in its time.
#ifndef BENCH_WORKLOAD_MULTIPLY_H
#define BENCH_WORKLOAD_MULTIPLY_H

#include "libraries/blas.h"
#include "program.h"

struct multiplier {
    const struct blas *blas;
    float *a, *b, *c; // room for the largest operands that are not floats; NULL: all are
};

// -1: out of memory, and nothing is to be closed.
int multiplier_open(struct multiplier *multiplier, const struct blas *blas, const struct program *program);
void multiplier_close(struct multiplier *multiplier);

void multiplier_run(const struct multiplier *multiplier, const struct gemm *gemm);

// `count` elements of this type as floats, and floats as such elements, rounded to nearest even.
void elements_widen(enum dtype dtype, const void *elements, float *floats, size_t count);
void elements_narrow(enum dtype dtype, const float *floats, void *elements, size_t count);

#endif
