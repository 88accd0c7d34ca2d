// An allreduce by our own kernels (bench/cuda, TWOSHOT) between ranks that share a GPU: one launch for all of
// them, so that all their blocks are there together. While blocks of a GEMM hold the multiprocessors that
// they need, they wait; what waits for longer than its host has patience gives up.
#ifndef BENCH_WORKLOAD_GPU_ALLREDUCE_H
#define BENCH_WORKLOAD_GPU_ALLREDUCE_H

#include <stddef.h>
#include <stdint.h>

#include "cuda/driver.h"
#include "cuda/parameters.h"
#include "host/group.h"

struct gpu_allreduce {
    const struct cuda_driver *driver;
    CUmodule module;
    CUfunction kernel;
    CUstream stream;
    int ranks;
    unsigned blocks, threads; // of each rank
    size_t capacity;          // bytes of a message at most
    CUdeviceptr memory;       // of all workspaces
    CUdeviceptr slots[MAX_TP], flags[MAX_TP], states[MAX_TP];
    uint32_t *give_up; // pinned
    CUdeviceptr give_up_address;
};

// What is asked for. `device`: this process's current GPU; `bytes`: of a message at most.
struct gpu_allreduce_wish {
    CUdevice device;
    CUstream stream;
    int ranks;
    enum dtype dtype;
    unsigned blocks, threads; // of each rank
    size_t bytes;
};

// False, with `reason`.
bool gpu_allreduce_open(struct gpu_allreduce *own, const struct cuda_driver *driver,
                        const struct gpu_allreduce_wish *wish, char reason[], size_t reason_size);
void gpu_allreduce_close(struct gpu_allreduce *own);

// Enqueues one for `bytes` of each rank. In and out may be written for up to 16 KiB beyond them.
CUresult gpu_allreduce_enqueue(const struct gpu_allreduce *own, const CUdeviceptr in[],
                               const CUdeviceptr out[], size_t bytes);

// All that wait leave; results are worthless from then on.
void gpu_allreduce_give_up(struct gpu_allreduce *own);

#endif
