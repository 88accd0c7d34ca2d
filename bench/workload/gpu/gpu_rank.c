// A rank's part of a GPU's memory; see gpu_rank.h.
#include "gpu_rank.h"

#include <stdint.h>
#include <stdlib.h>

// Our own kernels access whole rows of up to 1024 accesses of 16 bytes, also after an array's end.
enum { ALIGNMENT = 256, BEYOND = 1024 * 16 };

bool gpu_rank_lay_out(struct gpu_rank *rank, const struct program *program) {
    *rank = (struct gpu_rank){.program = program};
    rank->offsets = calloc(program->array_count + 1, sizeof *rank->offsets);
    if (rank->offsets == NULL) return false;
    for (size_t i = 0; i < program->array_count; i++) {
        rank->offsets[i] = rank->bytes;
        size_t bytes = array_bytes(&program->arrays[i]) + BEYOND;
        rank->bytes += (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    }
    return true;
}

void gpu_rank_free(struct gpu_rank *rank) {
    free(rank->offsets);
    rank->offsets = NULL;
}

size_t gpu_rank_offset(const struct gpu_rank *rank, const void *data) {
    for (size_t i = 0; i < rank->program->array_count; i++) {
        const struct array *array = &rank->program->arrays[i];
        uintptr_t first = (uintptr_t)array->data, at = (uintptr_t)data;
        if (at >= first && at - first < array_bytes(array)) return rank->offsets[i] + (at - first);
    }
    return 0;
}

struct gpu_gemm_shape gpu_rank_gemm(const struct gpu_rank *rank, size_t index, CUdeviceptr base) {
    static const cudaDataType_t types[DTYPES] = {
        [DTYPE_FLOAT32] = CUDA_R_32F, [DTYPE_BFLOAT16] = CUDA_R_16BF, [DTYPE_FLOAT16] = CUDA_R_16F};
    const struct gemm *gemm = &rank->program->gemms[index];
    return (struct gpu_gemm_shape){.type = types[gemm->dtype],
                                   .m = gemm->m,
                                   .n = gemm->n,
                                   .k = gemm->k,
                                   .trans_a = gemm->trans_a,
                                   .trans_b = gemm->trans_b,
                                   .accumulate = gemm->accumulate,
                                   .a = base + gpu_rank_offset(rank, gemm->a),
                                   .b = base + gpu_rank_offset(rank, gemm->b),
                                   .c = base + gpu_rank_offset(rank, gemm->c)};
}
