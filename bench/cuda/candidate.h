// The GPU backend's candidates.
#ifndef BENCH_CUDA_CANDIDATE_H
#define BENCH_CUDA_CANDIDATE_H

#include "cuda/device/device.h"

// Where the epilogue is: in the kernel that adds, in one kernel after it, or in one for each step.
enum epilogue { EPILOGUE_FUSED, EPILOGUE_ONE, EPILOGUE_SEPARATE };

// One of our own kernels (kernel_candidates.c).
struct kernel_detail {
    enum cuda_kernel kernel;
    enum epilogue epilogue;
};

// One of NCCL's (nccl.c).
struct nccl_detail {
    bool symmetric;
    enum epilogue epilogue;
    const char *algorithm, *protocol; // "": as NCCL chooses
    int channels;                     // 0: the same
};

extern const struct strategy strategy_cuda_kernel, strategy_cuda_nccl, strategy_auto;

// The list's candidates, then those of plug-ins.
extern struct candidate cuda_candidates[MAX_CANDIDATES];
extern int cuda_candidate_count;

// kernel_candidates.c: the name of a kernel in the images, and the most threads of its blocks.
enum { KERNEL_NAME_SIZE = 96 };
void kernel_name(char name[KERNEL_NAME_SIZE], enum cuda_kernel kernel, enum dtype dtype, bool fp32,
                 enum fusion fusion, int tp);
unsigned kernel_threads(int tp);

// A call as parameters of a kernel. An access has 16 bytes.
struct CallParameters call_parameters(const struct device *device, const struct call *call);
struct RankParameters rank_parameters(int rank, const struct call *call);

// Threads for a row of a call, at most `most`.
unsigned row_threads(const struct call *call, unsigned most);

// Why our kernels and epilogues cannot do this call, or NULL.
const char *call_refusal(const struct device *device, const struct call *call);

// epilogues.c: enqueues the epilogue of a call with its sum at residual_out; nothing for FUSION_NONE.
bool epilogue_launch(struct device *device, enum epilogue epilogue, const struct call *call);

#endif
