// GEMMs on a GPU by cuBLASLt, with the code of bench/replay. This header hides its names, which clash with
// those of programs.
#ifndef BENCH_WORKLOAD_GPU_GEMMS_H
#define BENCH_WORKLOAD_GPU_GEMMS_H

#include <library_types.h>
#include <stdbool.h>
#include <stddef.h>

#include "libraries/cuda_driver.h"

// Whether cuBLASLt can be loaded; uses no GPU. False: `reason`.
bool gpu_gemms_can_load(char reason[], size_t reason_size);

// Opens the GPU with this number and loads cuBLASLt. NULL with `reason`. Sets `stream` to the stream of
// GEMMs, and `library` to cuBLASLt's description.
const struct cuda_driver *gpu_gemms_open(int number, CUstream *stream, char library[], size_t library_size,
                                         char reason[], size_t reason_size);

// c[m, n] = a * b, or c += a * b, at addresses of the GPU, stored as in workload/program.h. Sums are in fp32
// and are rounded once to the type: CUDA_R_32F, CUDA_R_16BF or CUDA_R_16F.
struct gpu_gemm_shape {
    cudaDataType_t type;
    size_t m, n, k;
    bool trans_a, trans_b, accumulate;
    CUdeviceptr a, b, c;
};

// Sets the stream of the next GEMMs, and a workspace (GPU_GEMM_WORKSPACE bytes) that no other stream uses at
// the same time. gpu_gemms_open does so for its stream.
enum { GPU_GEMM_WORKSPACE = 64 << 20 };
void gpu_gemms_use_stream(CUstream stream, CUdeviceptr workspace);

// Prepares a GEMM on these addresses. NULL: `reason`.
struct gpu_gemm;
struct gpu_gemm *gpu_gemm_make(const struct gpu_gemm_shape *shape, char reason[], size_t reason_size);

// Enqueues it on the current stream. False: cuBLASLt rejected it.
bool gpu_gemm_enqueue(struct gpu_gemm *gemm);
void gpu_gemm_end(struct gpu_gemm *gemm); // NULL: nothing happens

#endif
