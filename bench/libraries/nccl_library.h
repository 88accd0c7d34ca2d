// NCCL, loaded at run time; bench/cuda implements this.
#ifndef BENCH_NCCL_LIBRARY_H
#define BENCH_NCCL_LIBRARY_H

// Such as 22809 for 2.28.9; 0: NCCL cannot be used.
int nccl_version(void);

// Aborts all communicators of this process, of any rank. None of them may be used afterwards.
void nccl_abort_all(void);

// A communicator for a plug-in; its calls block.
struct device;
struct communicator;

// Collective. Sets `comm` to an ncclComm_t, valid until nccl_close. NULL: `reason`, which may be "" on ranks
// that did not fail.
struct communicator *nccl_open(struct device *device, const void **comm, char reason[]);
void nccl_close(struct communicator *communicator);

#endif
