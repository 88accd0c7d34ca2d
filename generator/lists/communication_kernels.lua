-- The kernels that communicate, by their names. communication.lua finds the row of a kernel.
--
-- A kernel belongs to the first row with a `pattern`, a plain text in lower case, that is in its name in
-- lower case, mangled or not, with its template arguments and parameters.
--   library     the library that has the kernel; nil: several, or unknown
--   operation   a name of communication.operations; nil: the kernel's name contains it
--   algorithm   nil: unknown, or the kernel's name contains it
--   source      where the name is defined or was seen
--
-- How to add a library's kernels: rows above those of unknown libraries. A user's own kernels: a file with
-- the same rows for the option --collectives.
local kernels = {}

local TRTLLM = "github.com/NVIDIA/TensorRT-LLM, cpp/tensorrt_llm/kernels/"
local FLASHINFER = "github.com/flashinfer-ai/flashinfer, include/flashinfer/comm/"
local TORCH = "github.com/pytorch/pytorch, torch/csrc/distributed/c10d/symm_mem/CUDASymmetricMemoryOps.cu"
local TE = "github.com/NVIDIA/TransformerEngine, "
  .. "transformer_engine/common/comm_gemm_overlap/userbuffers/userbuffers.cu"
local AITER = "github.com/ROCm/aiter, csrc/include/custom_all_reduce.cuh"

kernels.list = {
  { library = "NCCL", pattern = "nccl", source = "github.com/NVIDIA/nccl, src/device/" },
  { library = "RCCL", pattern = "rccl", source = "github.com/ROCm/rccl, src/device/" },
  { library = "RCCL", pattern = "mscclkernel", source = "github.com/ROCm/rccl, src/include/msccl/" },
  { library = "HCCL", pattern = "hcom_", source = "gitee.com/ascend/cann-hccl" },
  { library = "HCCL", pattern = "hccl", source = "docs.habana.ai, HCCL" },

  { library = "vLLM", pattern = "cross_device_reduce_1stage", operation = "AllReduce", algorithm = "ONESHOT",
    source = "github.com/vllm-project/vllm, csrc/custom_all_reduce.cuh" },
  { library = "vLLM", pattern = "cross_device_reduce_2stage", operation = "AllReduce", algorithm = "TWOSHOT",
    source = "github.com/vllm-project/vllm, csrc/custom_all_reduce.cuh" },
  { library = "vLLM", pattern = "cross_device_reduce", operation = "AllReduce",
    source = "github.com/vllm-project/vllm, csrc/custom_all_reduce.cuh" },
  { library = "QuickReduce", pattern = "allreduce_prototype_oneshot", operation = "AllReduce",
    algorithm = "ONESHOT", source = "github.com/vllm-project/vllm, csrc/quickreduce/quick_reduce.h" },
  { library = "QuickReduce", pattern = "allreduce_prototype_twoshot", operation = "AllReduce",
    algorithm = "TWOSHOT", source = "github.com/vllm-project/vllm, csrc/quickreduce/quick_reduce.h" },

  -- Sums of other ranks are stored to all of them, so that the kernel behind it reads its own memory only.
  { library = "aiter", pattern = "reduce_scatter_cross_device_store", operation = "AllReduce",
    algorithm = "TWOSHOT", source = AITER },
  { library = "aiter", pattern = "allreduce_fusion_kernel_1stage", operation = "AllReduce",
    algorithm = "ONESHOT", source = AITER },
  { library = "aiter", pattern = "allreduce_fusion_kernel_2stage", operation = "AllReduce",
    algorithm = "TWOSHOT", source = AITER },
  { library = "aiter", pattern = "allreduce_fusion_kernel_split", operation = "AllReduce", source = AITER },
  { library = "aiter", pattern = "allgather_lastdim", operation = "AllGather", source = AITER },
  { library = "aiter", pattern = "allgather_vec", operation = "AllGather", source = AITER },

  -- Also with moereduction_ and moefinalize_ in front.
  { library = "FlashInfer", pattern = "allreduce_fusion_kernel_oneshot", operation = "AllReduce",
    algorithm = "ONESHOT", source = FLASHINFER .. "trtllm_allreduce_fusion.cuh" },
  { library = "FlashInfer", pattern = "allreduce_fusion_kernel_twoshot", operation = "AllReduce",
    algorithm = "TWOSHOT", source = FLASHINFER .. "trtllm_allreduce_fusion.cuh" },
  { library = "FlashInfer", pattern = "oneshotallreducefusionkernel", operation = "AllReduce",
    algorithm = "ONESHOT", source = FLASHINFER .. "trtllm_mnnvl_allreduce.cuh" },
  { library = "FlashInfer", pattern = "oneshotarfusednorm", operation = "AllReduce", algorithm = "ONESHOT",
    source = FLASHINFER .. "trtllm_mnnvl_allreduce.cuh" },
  { library = "TensorRT-LLM", pattern = "oneshot_allreduce_fusion_kernel", operation = "AllReduce",
    algorithm = "ONESHOT", source = TRTLLM .. "communicationKernels/mnnvlTwoShotAllreduceKernels.cu" },
  { library = "TensorRT-LLM", pattern = "twoshot_allreduce_kernel", operation = "AllReduce",
    algorithm = "TWOSHOT", source = TRTLLM .. "communicationKernels/mnnvlTwoShotAllreduceKernels.cu" },
  -- The second half of an AllReduce: it waits for the sums of the other ranks.
  { library = "TensorRT-LLM", pattern = "rmsnorm_lamport", operation = "AllReduce", algorithm = "TWOSHOT",
    source = TRTLLM .. "communicationKernels/mnnvlTwoShotAllreduceKernels.cu" },
  { library = "FlashInfer", pattern = "rmsnormlamport", operation = "AllReduce", algorithm = "TWOSHOT",
    source = FLASHINFER .. "trtllm_mnnvl_allreduce.cuh" },
  { library = "TensorRT-LLM", pattern = "lamport_style_one_shot_all_reduce", operation = "AllReduce",
    algorithm = "ONESHOT", source = TRTLLM .. "customAllReduceKernels.cu" },
  { library = "TensorRT-LLM", pattern = "one_shot_all_reduce_norm_kernel", operation = "AllReduce",
    algorithm = "ONESHOT", source = TRTLLM .. "customAllReduceKernels.cu" },
  { library = "TensorRT-LLM", pattern = "oneshotallreducekernel", operation = "AllReduce",
    algorithm = "ONESHOT", source = TRTLLM .. "customAllReduceKernels.cu" },
  -- Also with lowPrecision in front.
  { library = "TensorRT-LLM", pattern = "twoshotallreducekernel", operation = "AllReduce",
    algorithm = "TWOSHOT", source = TRTLLM .. "customAllReduceKernels.cu" },
  { library = "TensorRT-LLM", pattern = "moea2adispatchkernel", operation = "AllToAll",
    source = TRTLLM .. "communicationKernels/moeAlltoAllKernels.cu" },
  { library = "TensorRT-LLM", pattern = "moea2acombinekernel", operation = "AllToAll",
    source = TRTLLM .. "communicationKernels/moeAlltoAllKernels.cu" },
  { library = "TensorRT-LLM", pattern = "moealltoall", operation = "AllToAll",
    source = TRTLLM .. "fusedMoeCommKernels.cu" },

  { library = "PyTorch", pattern = "multimem_one_shot_all_reduce", operation = "AllReduce",
    algorithm = "ONESHOT", source = TORCH },
  { library = "PyTorch", pattern = "multimem_all_reduce", operation = "AllReduce", algorithm = "TWOSHOT",
    source = TORCH },
  { library = "PyTorch", pattern = "multimem_all_gather", operation = "AllGather", source = TORCH },
  { library = "PyTorch", pattern = "put_signal_kernel", operation = "SendRecv", source = TORCH },
  { library = "PyTorch", pattern = "wait_signal_kernel", operation = "SendRecv", source = TORCH },
  { library = "PyTorch", pattern = "::barrier_kernel(", operation = "Barrier", source = TORCH },

  { library = "Transformer Engine", pattern = "userbuffers_fp16_sum_inplace_gpu_rw_ag",
    operation = "AllGather", source = TE },
  { library = "Transformer Engine", pattern = "userbuffers_fp16_sum_inplace_gpu_rr_ag",
    operation = "AllGather", source = TE },
  { library = "Transformer Engine", pattern = "userbuffers_fp16_sum_inplace_gpu_mc_ag",
    operation = "AllGather", source = TE },
  { library = "Transformer Engine", pattern = "userbuffers_fp16_sum_inplace_gpu_rw_rs",
    operation = "ReduceScatter", source = TE },
  { library = "Transformer Engine", pattern = "userbuffers_fp16_sum_inplace_gpu_rr_rs",
    operation = "ReduceScatter", source = TE },
  { library = "Transformer Engine", pattern = "userbuffers_fp16_sum_inplace_gpu_mc_rs",
    operation = "ReduceScatter", source = TE },
  { library = "Transformer Engine", pattern = "userbuffers_fp16_sum_inplace_gpu", operation = "AllReduce",
    source = TE },
  { library = "Transformer Engine", pattern = "kuserbuffers_", operation = "SendRecv", source = TE },
  { library = "Transformer Engine", pattern = "userbuffers", source = TE },

  { library = "MSCCL++", pattern = "mscclpp", source = "github.com/microsoft/mscclpp" },
  { library = "mori", pattern = "epdispatch", operation = "AllToAll",
    source = "github.com/ROCm/mori, src/ops/dispatch_combine/" },
  { library = "mori", pattern = "epcombine", operation = "AllToAll",
    source = "github.com/ROCm/mori, src/ops/dispatch_combine/" },
  { library = "pplx", pattern = "a2a_dispatch", operation = "AllToAll",
    source = "github.com/perplexityai/pplx-garden" },
  { library = "pplx", pattern = "a2a_combine", operation = "AllToAll",
    source = "github.com/perplexityai/pplx-garden" },
  { library = "pplx", pattern = "pplx::", operation = "AllToAll",
    source = "github.com/perplexityai/pplx-kernels, csrc/all_to_all/" },
  -- Dispatch, combine, and the exchange of their counts; also in copies under other namespaces. Its kernels
  -- of namespace layout do not communicate.
  { library = "DeepEP", pattern = "internode", operation = "AllToAll",
    source = "github.com/deepseek-ai/DeepEP, csrc/kernels/" },
  { library = "DeepEP", pattern = "intranode", operation = "AllToAll",
    source = "github.com/deepseek-ai/DeepEP, csrc/kernels/" },
  { library = "NVSHMEM", pattern = "nvshmem", source = "docs.nvidia.com/nvshmem" },

  -- Kernels of unknown libraries, by the words for their operation.
  { pattern = "one_shot_all_reduce", operation = "AllReduce", algorithm = "ONESHOT" },
  { pattern = "two_shot_all_reduce", operation = "AllReduce", algorithm = "TWOSHOT" },
  { pattern = "oneshot_all_reduce", operation = "AllReduce", algorithm = "ONESHOT" },
  { pattern = "twoshot_all_reduce", operation = "AllReduce", algorithm = "TWOSHOT" },
  { pattern = "oneshotallreduce", operation = "AllReduce", algorithm = "ONESHOT" },
  { pattern = "twoshotallreduce", operation = "AllReduce", algorithm = "TWOSHOT" },
  { pattern = "oneshot_allreduce", operation = "AllReduce", algorithm = "ONESHOT" },
  { pattern = "twoshot_allreduce", operation = "AllReduce", algorithm = "TWOSHOT" },
  { pattern = "all_reduce", operation = "AllReduce" },
  { pattern = "allreduce", operation = "AllReduce" },
  { pattern = "reduce_scatter", operation = "ReduceScatter" },
  { pattern = "reducescatter", operation = "ReduceScatter" },
  { pattern = "all_gather", operation = "AllGather" },
  { pattern = "allgather", operation = "AllGather" },
  { pattern = "all_to_all", operation = "AllToAll" },
  { pattern = "alltoall", operation = "AllToAll" },
  { pattern = "all2all", operation = "AllToAll" },
  { pattern = "multimem_" },
}

-- Kernels with names that begin with one of these texts do not communicate, whatever else is in the name:
-- torch.compile puts the names of the ops around a pointwise kernel or a reduction into its name.
kernels.others = { "triton_poi_fused_", "triton_red_fused_", "triton_per_fused_" }

return kernels
