// Collectives of a program by NCCL, which is loaded when they are asked for. It reads its environment once:
// how many channels and threads it is to have is said before that, by NCCL_MIN_NCHANNELS, NCCL_MAX_NCHANNELS,
// NCCL_NTHREADS and, for RCCL, RCCL_THREADS_PER_BLOCK; how many it has is read in its log.
#ifndef BENCH_WORKLOAD_GPU_NCCL_H
#define BENCH_WORKLOAD_GPU_NCCL_H

#include <cuda.h>

#include "ranks/group.h"
#include "workload/program.h"

// Loads NCCL, which starts nothing. -1 with `reason`.
int gpu_nccl_load(char reason[PROGRAM_REASON]);

// Collective. -1 with `reason`, perhaps after rank_fails (workload/engine.h). `channels` and `threads` become
// what the log says; 0: it does not.
int gpu_nccl_open(struct group *group, int *channels, int *threads, char library[], size_t library_size,
                  char reason[PROGRAM_REASON]);

// Enqueues a collective. -1, and gpu_nccl_problem says why.
int gpu_nccl_enqueue(const struct collective *collective, CUdeviceptr in, CUdeviceptr out, CUstream stream);
const char *gpu_nccl_problem(void);

// What NCCL refused of what it was asked for, and went on, or last warned of; "": nothing.
const char *gpu_nccl_answer(void);

void gpu_nccl_close(void);

#endif
