// A rank's part of a GPU's memory: where its program's arrays lie, from the beginning of that memory, and
// what its GEMMs are there. Touches no GPU.
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
void gpu_rank_forget(struct gpu_rank *rank);

// Where it has what stands at `data`.
size_t gpu_rank_offset(const struct gpu_rank *rank, const void *data);

// A GEMM of the program, for memory that begins at `base`.
struct gpu_gemm_shape gpu_rank_gemm(const struct gpu_rank *rank, size_t index, CUdeviceptr base);

#endif
