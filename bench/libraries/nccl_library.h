// The NCCL that would be loaded.
#ifndef BENCH_CUDA_NCCL_LIBRARY_H
#define BENCH_CUDA_NCCL_LIBRARY_H

// Such as 22809 for 2.28.9; 0: there is none that could be used.
int nccl_version(void);

// Aborts all communicators of this process, of whatever rank; no other one of them is used by then.
void nccl_abort_all(void);

// A communicator for a plug-in, whose calls block.
struct device;
struct channel;

// Collective. `comm` is to point to an ncclComm_t, until nccl_close. NULL: `reason`, maybe not on all ranks.
struct channel *nccl_open(struct device *device, const void **comm, char reason[]);
void nccl_close(struct channel *channel);

#endif
