// The candidates of the GPU backend, from the list (generator/lists/lists.lua), and functions that they
// share.
#include "candidate.h"

enum { ACCESS_BYTES = 16, WARP_THREADS = 32 };

#define KERNEL_ROW(its_name, optional, its_kernel, its_epilogue, fp32, in_switch)                            \
    {.name = its_name,                                                                                       \
     .strategy = &strategy_cuda_kernel,                                                                      \
     .accumulates_fp32 = fp32,                                                                               \
     .bits_may_vary = in_switch,                                                                             \
     .adds_in_switch = in_switch,                                                                            \
     .is_optional = optional,                                                                                \
     .ops = 1u << OP_ALLREDUCE,                                                                              \
     .ompi_component = "",                                                                                   \
     .mpich_algorithm = "",                                                                                  \
     .detail = &(const struct kernel_detail){its_kernel, its_epilogue}},

#define NCCL_ROW(its_name, its_ops, optional, is_symmetric, its_epilogue, its_algorithm, its_protocol,       \
                 its_channels)                                                                               \
    {.name = its_name,                                                                                       \
     .strategy = &strategy_cuda_nccl,                                                                        \
     .ops = its_ops,                                                                                         \
     .ompi_component = "",                                                                                   \
     .mpich_algorithm = "",                                                                                  \
     .is_optional = optional,                                                                                \
     .bits_may_vary = true,                                                                                  \
     .detail = &(const struct nccl_detail){is_symmetric, its_epilogue, its_algorithm, its_protocol,          \
                                           its_channels}},

#define AUTO_ROW(its_name, optional)                                                                         \
    {.name = its_name,                                                                                       \
     .strategy = &strategy_auto,                                                                             \
     .ops = 1u << OP_ALLREDUCE,                                                                              \
     .ompi_component = "",                                                                                   \
     .mpich_algorithm = "",                                                                                  \
     .is_optional = optional,                                                                                \
     .bits_may_vary = true},

struct candidate cuda_candidates[MAX_CANDIDATES] = {
    CUDA_KERNEL_CANDIDATES(KERNEL_ROW) CUDA_NCCL_CANDIDATES(NCCL_ROW) CUDA_AUTO_CANDIDATES(AUTO_ROW)};

#define ONE_MORE(...) +1
int cuda_candidate_count =
    0 CUDA_KERNEL_CANDIDATES(ONE_MORE) CUDA_NCCL_CANDIDATES(ONE_MORE) CUDA_AUTO_CANDIDATES(ONE_MORE);

struct CallParameters call_parameters(const struct device *device, const struct call *call) {
    size_t row_bytes = call->hidden_size * dtype_sizes_bytes[call->dtype];
    return (struct CallParameters){
        .num_tokens = (int32_t)call->num_tokens,
        .accesses_per_token = (int32_t)(row_bytes / ACCESS_BYTES),
        .accesses_per_block = (int32_t)(row_bytes / ACCESS_BYTES),
        .gamma = call->gamma,
        .epsilon = call->epsilon,
        .scale = call->scale,
        .max_blocks = MAX_BLOCKS,
        .capacity = device->workspace_bytes / ACCESS_BYTES,
        .give_up = (const uint32_t *)device->give_up_address,
    };
}

struct RankParameters rank_parameters(int rank, const struct call *call) {
    return (struct RankParameters){
        .rank = rank,
        .input = call->input,
        .out = call->out,
        .residual = call->residual,
        .residual_out = call->residual_out,
        .norm_out = call->writes_norm ? call->norm_out : NULL,
        .block_scales = call->block_scales,
    };
}

unsigned row_threads(const struct call *call, unsigned most) {
    size_t accesses = call->hidden_size * dtype_sizes_bytes[call->dtype] / ACCESS_BYTES;
    size_t threads = (accesses + WARP_THREADS - 1) / WARP_THREADS * WARP_THREADS;
    return threads < most ? (unsigned)threads : most;
}

const char *call_refusal(const struct device *device, const struct call *call) {
    if (call->hidden_size * dtype_sizes_bytes[call->dtype] % ACCESS_BYTES != 0) {
        return call->is_size_alone ? "its size is no multiple of 16 bytes, which our kernels move at a time"
                                   : "hidden size x element size is no multiple of 16 bytes";
    }
    const struct fusion_facts *facts = &fusion_facts[call->fusion];
    if (device->sm < facts->from_sm && !device->options.emulate_nvfp4) return facts->sm_refusal;
    return NULL;
}
