// GEMMs on a GPU; see gpu_gemms.h.
#include "gpu_gemms.h"

#include <stdio.h>
#include <stdlib.h>

#include "replay/engines/gpu.h"
#include "replay/math_library.h"

struct gpu_gemm {
    struct prepared_op prepared;
};

bool gpu_gemms_can_load(char reason[], size_t reason_size) {
    return cublaslt_load(reason, reason_size) == 0;
}

const struct cuda_driver *gpu_gemms_open(int number, CUstream *stream, char library[], size_t library_size,
                                         char reason[], size_t reason_size) {
    char why[REASON_SIZE] = "", answer[REASON_SIZE];
    if (gpu_open(number, reason, reason_size) != 0) return NULL;
    if (library_cublaslt.open(1, why) != 0) {
        snprintf(reason, reason_size, "%s", why);
        return NULL;
    }
    library_cublaslt.describe(answer, sizeof answer);
    snprintf(library, library_size, "cuBLASLt %s", answer);
    *stream = gpu.stream;
    return gpu.driver;
}

static struct tensor tensor_at(enum data_type type, CUdeviceptr address, size_t count) {
    return (struct tensor){.type = type, .count = count, .data = (void *)(uintptr_t)address}; // NOLINT
}

_Static_assert((int)GPU_GEMM_WORKSPACE == (int)WORKSPACE_BYTES, "the size that replay gives cuBLASLt");

void gpu_gemms_use_stream(CUstream stream, CUdeviceptr workspace) {
    gpu.stream = stream;
    gpu.workspace = workspace;
}

struct gpu_gemm *gpu_gemm_make(const struct gpu_gemm_shape *shape, char reason[], size_t reason_size) {
    char why[REASON_SIZE] = "out of memory";
    enum data_type type = shape->type == CUDA_R_16BF  ? BFLOAT16
                          : shape->type == CUDA_R_16F ? FLOAT16
                                                      : FLOAT32;
    struct op op = {.kind = OP_GEMM, .type = type};
    op.gemm = (struct gemm){.batch = 1,
                            .m = (int64_t)shape->m,
                            .n = (int64_t)shape->n,
                            .k = (int64_t)shape->k,
                            .trans_a = shape->trans_a,
                            .trans_b = shape->trans_b,
                            .lda = (int64_t)(shape->trans_a ? shape->m : shape->k),
                            .ldb = (int64_t)(shape->trans_b ? shape->k : shape->n),
                            .addend = shape->accumulate ? ADD_MATRIX : ADD_NOTHING,
                            .alpha = 1,
                            .beta = 1};
    struct operands operands = {.a = tensor_at(type, shape->a, shape->m * shape->k),
                                .b = tensor_at(type, shape->b, shape->k * shape->n),
                                .out = tensor_at(type, shape->c, shape->m * shape->n)};
    if (shape->accumulate) operands.c = operands.out;
    struct gpu_gemm *made = calloc(1, sizeof *made);
    if (made != NULL && library_cublaslt.prepare(&op, &operands, &made->prepared, why) == 0) return made;
    snprintf(reason, reason_size, "%s", why);
    free(made);
    return NULL;
}

bool gpu_gemm_enqueue(struct gpu_gemm *gemm) {
    return gemm->prepared.run(gemm->prepared.state) == 0;
}

void gpu_gemm_end(struct gpu_gemm *gemm) {
    if (gemm == NULL) return;
    gemm->prepared.end(gemm->prepared.state);
    free(gemm);
}
