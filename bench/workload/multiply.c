// Products of matrices by OpenBLAS; see multiply.h.
#include "multiply.h"

#include <stdlib.h>
#include <string.h>

#include "elements/conversions.h"

// ---- types --------------------------------------------------------------------------------------

void elements_widen(enum dtype dtype, const void *elements, float *floats, size_t count) {
    const uint16_t *from = elements;
    if (dtype == DTYPE_BFLOAT16) {
        for (size_t i = 0; i < count; i++) floats[i] = float_of_bfloat16(from[i]);
    } else if (dtype == DTYPE_FLOAT16) {
        for (size_t i = 0; i < count; i++) floats[i] = float_of_float16(from[i]);
    } else {
        memcpy(floats, elements, count * sizeof *floats);
    }
}

void elements_narrow(enum dtype dtype, const float *floats, void *elements, size_t count) {
    uint16_t *to = elements;
    if (dtype == DTYPE_BFLOAT16) {
        for (size_t i = 0; i < count; i++) to[i] = bfloat16_of_float(floats[i]);
    } else if (dtype == DTYPE_FLOAT16) {
        for (size_t i = 0; i < count; i++) to[i] = float16_of_float(floats[i]);
    } else {
        memcpy(elements, floats, count * sizeof *floats);
    }
}

// ---- products -----------------------------------------------------------------------------------

int multiplier_open(struct multiplier *multiplier, const struct blas *blas, const struct program *program) {
    size_t a = 0, b = 0, c = 0;
    *multiplier = (struct multiplier){.blas = blas};
    for (size_t i = 0; i < program->gemm_count; i++) {
        const struct gemm *gemm = &program->gemms[i];
        if (gemm->dtype == DTYPE_FLOAT32) continue;
        if (gemm->m * gemm->k > a) a = gemm->m * gemm->k;
        if (gemm->k * gemm->n > b) b = gemm->k * gemm->n;
        if (gemm->m * gemm->n > c) c = gemm->m * gemm->n;
    }
    if (a == 0) return 0;
    multiplier->a = malloc(a * sizeof(float));
    multiplier->b = malloc(b * sizeof(float));
    multiplier->c = malloc(c * sizeof(float));
    if (multiplier->a != NULL && multiplier->b != NULL && multiplier->c != NULL) return 0;
    multiplier_close(multiplier);
    return -1;
}

void multiplier_close(struct multiplier *multiplier) {
    free(multiplier->a);
    free(multiplier->b);
    free(multiplier->c);
    *multiplier = (struct multiplier){.blas = NULL};
}

static void multiply_floats(const struct multiplier *multiplier, const struct gemm *gemm, const float *a,
                            const float *b, float *c) {
    int m = (int)gemm->m, n = (int)gemm->n, k = (int)gemm->k;
    multiplier->blas->sgemm(BLAS_ROW_MAJOR, gemm->trans_a ? BLAS_TRANS : BLAS_NO_TRANS,
                            gemm->trans_b ? BLAS_TRANS : BLAS_NO_TRANS, m, n, k, 1, a, gemm->trans_a ? m : k,
                            b, gemm->trans_b ? k : n, gemm->accumulate ? 1 : 0, c, n);
}

void multiplier_run(const struct multiplier *multiplier, const struct gemm *gemm) {
    size_t m = gemm->m, n = gemm->n, k = gemm->k;
    if (gemm->dtype == DTYPE_FLOAT32) {
        multiply_floats(multiplier, gemm, gemm->a, gemm->b, gemm->c);
        return;
    }
    elements_widen(gemm->dtype, gemm->a, multiplier->a, m * k);
    elements_widen(gemm->dtype, gemm->b, multiplier->b, k * n);
    if (gemm->accumulate) elements_widen(gemm->dtype, gemm->c, multiplier->c, m * n);
    multiply_floats(multiplier, gemm, multiplier->a, multiplier->b, multiplier->c);
    elements_narrow(gemm->dtype, multiplier->c, gemm->c, m * n);
}
