// What the GPU backend knows of a candidate beside its name.
#ifndef BENCH_CUDA_CANDIDATE_H
#define BENCH_CUDA_CANDIDATE_H

#include "cuda/device/device.h"

// Where the epilogue is: in the kernel that adds up, in one kernel after it, or in one for each step.
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

// Those of the list, and then those of plug-ins.
extern struct candidate cuda_candidates[MAX_CANDIDATES];
extern int cuda_candidate_count;

// What of a call the kernels are told. `accesses_per_token`: of 16 bytes.
struct CallParameters call_parameters(const struct device *device, const struct call *call);
struct RankParameters rank_parameters(int rank, const struct call *call);

// Threads for a row of a call, and how many blocks are useful for `rows` of them.
unsigned row_threads(const struct call *call, unsigned most);

// Whether the kernels can do this call at all, whoever adds up; NULL or why not.
const char *call_refusal(const struct device *device, const struct call *call);

// epilogues.c: the epilogue of a call after its sum, which lies where residual_out goes. Nothing for NONE.
bool epilogue_launch(struct device *device, enum epilogue epilogue, const struct call *call);

#endif
