// Collectives of a program by NCCL, loaded at run time. NCCL reads its environment once, so the numbers of
// channels and threads are set before that, by NCCL_MIN_NCHANNELS, NCCL_MAX_NCHANNELS, NCCL_NTHREADS and, for
// RCCL, RCCL_THREADS_PER_BLOCK; its log shows the numbers that it uses.
#ifndef BENCH_WORKLOAD_GPU_NCCL_H
#define BENCH_WORKLOAD_GPU_NCCL_H

#include <cuda.h>

#include "ranks/group.h"
#include "workload/program.h"

// Loads NCCL without starting it. -1 with `reason`.
int gpu_nccl_load(char reason[PROGRAM_REASON]);

// Collective. -1 with `reason`, perhaps after rank_fails (workload/engine.h). Sets `channels` and `threads`
// to the numbers in the log; 0: the log has none.
int gpu_nccl_open(struct group *group, int *channels, int *threads, char library[], size_t library_size,
                  char reason[PROGRAM_REASON]);

// Enqueues a collective. -1: gpu_nccl_problem has the reason.
int gpu_nccl_enqueue(const struct collective *collective, CUdeviceptr in, CUdeviceptr out, CUstream stream);
const char *gpu_nccl_problem(void);

// The setting that NCCL refused and continued without, or its last warning; "": none.
const char *gpu_nccl_warning(void);

void gpu_nccl_close(void);

#endif
