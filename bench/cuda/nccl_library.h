// The NCCL that would be loaded.
#ifndef BENCH_CUDA_NCCL_LIBRARY_H
#define BENCH_CUDA_NCCL_LIBRARY_H

// Such as 22809 for 2.28.9; 0: there is none that could be used.
int nccl_version(void);

#endif
