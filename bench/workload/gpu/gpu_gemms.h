// GEMMs on a GPU by cuBLASLt, as replays have them (bench/replay): what names they share with programs stays
// out of sight here.
#ifndef BENCH_WORKLOAD_GPU_GEMMS_H
#define BENCH_WORKLOAD_GPU_GEMMS_H

#include <library_types.h>
#include <stdbool.h>
#include <stddef.h>

#include "libraries/cuda_driver.h"

// Whether cuBLASLt is there; no GPU is touched for that. False: `reason`.
bool gpu_gemms_are_there(char reason[], size_t reason_size);

// Opens the GPU with this number and loads cuBLASLt. NULL with `reason`. `stream` becomes that of the GEMMs,
// `library` the words for it.
const struct cuda_driver *gpu_gemms_open(int number, CUstream *stream, char library[], size_t library_size,
                                         char reason[], size_t reason_size);

// c[m, n] = a * b, or added to it; addresses of the GPU, stored as in workload/program.h. Sums are kept in
// fp32 and rounded once to the type, which is one of CUDA_R_32F, CUDA_R_16BF and CUDA_R_16F.
struct gpu_gemm_shape {
    cudaDataType_t type;
    size_t m, n, k;
    bool trans_a, trans_b, accumulate;
    CUdeviceptr a, b, c;
};

// Where GEMMs are enqueued from now on, with a workspace (GPU_GEMM_WORKSPACE bytes) that no other stream's
// have at the same time. gpu_gemms_open has done so for its stream.
enum { GPU_GEMM_WORKSPACE = 64 << 20 };
void gpu_gemms_go_on(CUstream stream, CUdeviceptr workspace);

struct gpu_gemm;
struct gpu_gemm *gpu_gemm_make(const struct gpu_gemm_shape *shape, char reason[], size_t reason_size);
bool gpu_gemm_enqueue(struct gpu_gemm *gemm);
void gpu_gemm_end(struct gpu_gemm *gemm); // NULL: nothing happens

#endif
