// Matrix products by OpenBLAS. As in PyTorch's addmm on a CPU, the addend is first copied to the result.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libraries/blas.h"
#include "replay/addend.h"
#include "replay/math_library.h"
#include "replay/parallel_for.h"

static struct blas blas;

static int open_blas(int threads, char reason[REASON_SIZE]) {
    return blas_open(&blas, threads, reason, REASON_SIZE);
}

static void describe(char text[], size_t size) {
    const char *version = strchr(blas.version, ' ');
    snprintf(text, size, "version=%s core=%s threads=%d", version != NULL ? version + 1 : blas.version,
             blas.core, blas.threads);
}

struct state {
    struct gemm gemm;
    struct operands operands;
    size_t width; // of an element
};

static void multiply(const struct state *at, size_t b) {
    const struct gemm *gemm = &at->gemm;
    int m = (int)gemm->m, n = (int)gemm->n, k = (int)gemm->k, lda = (int)gemm->lda, ldb = (int)gemm->ldb;
    int trans_a = gemm->trans_a ? BLAS_TRANS : BLAS_NO_TRANS;
    int trans_b = gemm->trans_b ? BLAS_TRANS : BLAS_NO_TRANS;
    double beta = gemm->addend == ADD_NOTHING ? 0 : gemm->beta;
    char *a = (char *)at->operands.a.data + b * (size_t)gemm->stride_a * at->width;
    char *other = (char *)at->operands.b.data + b * (size_t)gemm->stride_b * at->width;
    char *out = (char *)at->operands.out.data + b * (size_t)(gemm->m * gemm->n) * at->width;
    if (at->operands.a.type == FLOAT64)
        blas.dgemm(BLAS_ROW_MAJOR, trans_a, trans_b, m, n, k, gemm->alpha, (const double *)(void *)a, lda,
                   (const double *)(void *)other, ldb, beta, (double *)(void *)out, n);
    else
        blas.sgemm(BLAS_ROW_MAJOR, trans_a, trans_b, m, n, k, (float)gemm->alpha, (const float *)(void *)a,
                   lda, (const float *)(void *)other, ldb, (float)beta, (float *)(void *)out, n);
}

static void multiply_some(void *context, size_t from, size_t to) {
    for (size_t b = from; b < to; b++) multiply(context, b);
}

// Each product of a batch is computed by one thread: several threads would wait for each other in each of
// many small products.
static void multiply_batch(struct state *at) {
    size_t batch = (size_t)at->gemm.batch;
    bool spreads = batch >= (size_t)blas.threads && blas.threads > 1;
    if (spreads) blas.set_threads(1);
    parallel_for(spreads ? blas.threads : 1, batch, multiply_some, at);
    if (spreads) blas.set_threads(blas.threads);
}

static int run(void *state) {
    struct state *at = state;
    if (at->gemm.addend != ADD_NOTHING && at->gemm.beta != 0)
        copy_addend(&at->gemm, &at->operands, blas.threads);
    multiply_batch(at);
    return 0;
}

static int prepare(const struct op *op, const struct operands *operands, struct prepared_op *prepared,
                   char reason[REASON_SIZE]) {
    const struct gemm *gemm = &op->gemm;
    if (gemm->m > INT32_MAX || gemm->n > INT32_MAX || gemm->k > INT32_MAX || gemm->lda > INT32_MAX ||
        gemm->ldb > INT32_MAX) {
        snprintf(reason, REASON_SIZE, "OpenBLAS counts in 32 bits, and a size is larger");
        return -1;
    }
    struct state *state = malloc(sizeof *state);
    if (state == NULL) {
        snprintf(reason, REASON_SIZE, "out of memory");
        return -1;
    }
    *state = (struct state){*gemm, *operands, data_type_size(operands->a.type)};
    *prepared = (struct prepared_op){.run = run, .end = free, .state = state};
    snprintf(prepared->kernel, sizeof prepared->kernel, "%cgemm_%c%c:%s",
             operands->a.type == FLOAT64 ? 'd' : 's', gemm->trans_a ? 't' : 'n', gemm->trans_b ? 't' : 'n',
             blas.core);
    if (gemm->batch > 1)
        snprintf(prepared->note, sizeof prepared->note, "the batch as a loop of calls, spread over threads");
    return 0;
}

const struct library library_openblas = {
    .name = "openblas",
    .kinds = 1 << OP_GEMM,
    .types = 1 << FLOAT32 | 1 << FLOAT64,
    .open = open_blas,
    .describe = describe,
    .prepare = prepare,
};
