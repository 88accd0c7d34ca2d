// Collectives by our own kernels (bench/cuda: TWOSHOT, and those of exchange.h) between ranks that share a
// GPU: one launch for all of them, so that all their blocks are resident together. While blocks of a GEMM
// occupy the multiprocessors that they need, they wait; the host makes them give up after its patience.
#ifndef BENCH_WORKLOAD_GPU_KERNELS_H
#define BENCH_WORKLOAD_GPU_KERNELS_H

#include <stddef.h>
#include <stdint.h>

#include "cuda/kernels/parameters.h"
#include "libraries/cuda_driver.h"
#include "ranks/group.h"
#include "workload/program.h"

struct gpu_own {
    const struct cuda_driver *driver;
    CUmodule module;
    CUfunction kernels[COLLECTIVE_KINDS][DTYPES]; // of the collectives of the program
    CUstream stream;
    int ranks;
    unsigned blocks, threads, most_blocks; // of each rank; as many as the GPU holds at once
    size_t capacity;                       // bytes of a message at most
    CUdeviceptr memory;                    // of all workspaces
    CUdeviceptr slots[MAX_TP], flags[MAX_TP], states[MAX_TP];
    uint32_t *give_up; // pinned
    CUdeviceptr give_up_address;
};

// What the kernels are for. `device`: this process's current GPU; `bytes`: the largest message of a rank.
struct gpu_own_wish {
    CUdevice device;
    CUstream stream;
    const struct program *program; // its ranks, and the kinds and types of its collectives
    unsigned blocks, threads;      // of each rank
    size_t bytes;
};

// A collective of all ranks: the addresses of each rank's message and result, and how many elements each
// sends to each (ALL_TO_ALL).
struct gpu_own_call {
    enum collective_kind kind;
    enum dtype dtype;
    size_t elements; // of the whole message for ALLREDUCE, of one rank's part for the others
    CUdeviceptr in[MAX_TP], out[MAX_TP];
    size_t sent[MAX_TP][MAX_TP];
};

// False, with `reason`.
bool gpu_own_open(struct gpu_own *own, const struct cuda_driver *driver, const struct gpu_own_wish *wish,
                  char reason[], size_t reason_size);
void gpu_own_close(struct gpu_own *own);

// Enqueues a collective. An allreduce may write up to 16 KiB after its in and out.
CUresult gpu_own_enqueue(const struct gpu_own *own, const struct gpu_own_call *call);

// Makes waiting kernels leave; results are worthless from then on.
void gpu_own_give_up(struct gpu_own *own);

#endif
