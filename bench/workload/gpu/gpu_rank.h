// A rank's part of a GPU's memory: the offsets of its program's arrays, and its GEMMs at these offsets. Uses
// no GPU.
#ifndef BENCH_WORKLOAD_GPU_RANK_H
#define BENCH_WORKLOAD_GPU_RANK_H

#include "gpu_gemms.h"
#include "workload/program.h"

struct gpu_rank {
    const struct program *program;
    size_t *offsets; // of arrays, by their number
    size_t bytes;
};

// False: out of memory.
bool gpu_rank_lay_out(struct gpu_rank *rank, const struct program *program);
void gpu_rank_free(struct gpu_rank *rank);

// The offset of what the host has at `data`.
size_t gpu_rank_offset(const struct gpu_rank *rank, const void *data);

// A GEMM of the program in memory that begins at `base`.
struct gpu_gemm_shape gpu_rank_gemm(const struct gpu_rank *rank, size_t index, CUdeviceptr base);

#endif
