// A GPU that all ranks share. Rank 0 enqueues the steps of all of them: each rank has a stream for its GEMMs,
// and one stream of higher priority has the collectives, each of which is one launch for all ranks. Functions
// that return bool are false after a failure, and queues.problem is the reason.
#ifndef BENCH_WORKLOAD_SHARED_GPU_H
#define BENCH_WORKLOAD_SHARED_GPU_H

#include "gpu_kernels.h"
#include "gpu_queues.h"
#include "gpu_records.h"
#include "gpu_shared_data.h"

// The resources that rank 0 has for each rank.
struct rank_resources {
    CUstream compute;
    CUdeviceptr memory, workspace;
    struct gpu_gemm **gemms;
    struct gpu_events *by_action;
    CUevent *ready; // by collective: its input is complete; also recorded in steps of GEMMs alone
    CUevent end;    // of this rank's step
};

// The caller sets the first three, and queues.problem.
struct shared_gpu {
    const struct engine_setup *setup;
    const struct gpu_shared_data *shared;
    const struct gpu_records *records;
    struct gpu_queues queues;
    struct rank_resources ranks[MAX_NODE_RANKS];
    struct gpu_events *by_collective, *step;
    struct gpu_kernels kernels;
    bool hangs; // its kernels did not end after they had to give up
};

// Opens the GPU with the arrays, GEMMs and events of all ranks, and our kernels. After a failure it must be
// closed, too.
bool shared_gpu_open(struct shared_gpu *gpu);
void shared_gpu_close(struct shared_gpu *gpu);

// Begins a step when the GPU is idle, and reads the host's clock at that moment.
bool shared_gpu_begin_step(struct shared_gpu *gpu, enum step_mode mode, uint64_t *begin_ns);

// Enqueues a step and waits for it; records in `shared` what the host did for each rank.
bool shared_gpu_run_step(struct shared_gpu *gpu, enum step_mode mode);

// Waits until the GPU is idle: only then are CUPTI's records complete.
bool shared_gpu_finish_streams(const struct shared_gpu *gpu);

// Copies the arrays of all ranks from `shared` to the GPU, or back.
bool shared_gpu_copy(struct shared_gpu *gpu, bool to_gpu);

#endif
