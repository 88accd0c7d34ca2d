// Collectives by our own kernels (bench/cuda: TWOSHOT, and those of exchange.h) between ranks that share a
// GPU: one launch for all of them, so that all their blocks are resident together. While blocks of a GEMM
// occupy the multiprocessors that they need, they wait; the host makes them give up after its patience. Some
// multiprocessors always stay free for GEMMs.
#ifndef BENCH_WORKLOAD_GPU_KERNELS_H
#define BENCH_WORKLOAD_GPU_KERNELS_H

#include <stddef.h>
#include <stdint.h>

#include "cuda/kernels/parameters.h"
#include "libraries/cuda_driver.h"
#include "ranks/group.h"
#include "workload/program.h"

struct gpu_kernels {
    const struct cuda_driver *driver;
    CUmodule module;
    CUfunction functions[COLLECTIVE_KINDS][DTYPES]; // of the collectives of the program
    CUstream stream;
    int ranks;
    unsigned blocks, threads, most_blocks;     // of each rank: in use; at most
    int multiprocessors, free_multiprocessors; // those that our blocks leave to GEMMs
    size_t capacity;                           // bytes of a message at most
    CUdeviceptr memory;                        // of all workspaces
    CUdeviceptr slots[MAX_TP], flags[MAX_TP], states[MAX_TP];
    uint32_t *give_up; // pinned
    CUdeviceptr give_up_address;
};

// The settings of the kernels. `device`: this process's current GPU; `bytes`: the largest message of a rank.
struct gpu_kernels_options {
    CUdevice device;
    CUstream stream;
    const struct program *program; // its ranks, and the kinds and types of its collectives
    unsigned blocks, threads;      // of each rank; as many blocks as the GPU has room for, if that is less
    size_t bytes;
};

// A collective of all ranks: the addresses of each rank's message and result, and how many elements each
// sends to each (ALL_TO_ALL).
struct gpu_kernels_call {
    enum collective_kind kind;
    enum dtype dtype;
    size_t elements; // of the whole message for ALLREDUCE, of one rank's part for the others
    CUdeviceptr in[MAX_TP], out[MAX_TP];
    size_t sent[MAX_TP][MAX_TP];
};

// Loads the kernels of the program's collectives, and allocates workspaces for them. False: `reason`; it must
// be closed then, too.
bool gpu_kernels_open(struct gpu_kernels *kernels, const struct cuda_driver *driver,
                      const struct gpu_kernels_options *options, char reason[], size_t reason_size);
void gpu_kernels_close(struct gpu_kernels *kernels);

// Enqueues a collective. An allreduce may read up to 16 KiB after the end of `in`, and write as much after
// that of `out`.
CUresult gpu_kernels_enqueue(const struct gpu_kernels *kernels, const struct gpu_kernels_call *call);

// Ends the waits of kernels; results are invalid from then on.
void gpu_kernels_give_up(struct gpu_kernels *kernels);

#endif
