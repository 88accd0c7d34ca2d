-- Facts about the programs that read the files of this room: the version that was read, and its limits.
-- Sizes are bytes. A new version of a reader is a change here; the proofs (tests/unit/frameworks/) have the
-- rules by which each looks a size up.
local MIB = 1 << 20

return {
  vllm = {
    read_as = "vLLM main of 2026-08 (all_reduce_utils.py of 00d618aa, allreduce_rms_fusion.py)",
    worlds = { 2, 4, 6, 8 },        -- of its custom allreduce and of torch's symmetric memory
    fused_worlds = { 2, 4, 8, 16 }, -- of FlashInfer's fused kernels
    custom_most = 8 * MIB,          -- its custom allreduce never takes more, whatever the dictionary has
    custom_step = 16,               -- its custom allreduce takes multiples of this
    symmetric_dtype = "bfloat16",
    one_shot_most = 64 * MIB,       -- of FlashInfer's one-shot kernel, divided by the number of ranks
    nccl_symmetric_from = 4,        -- ranks, if no world size below was measured with it
    -- The numbers of ranks with which torch's symmetric memory has the switch add.
    multimem = { [90] = { 4, 6, 8 }, [100] = { 6, 8 }, [103] = { 6, 8 } },
  },
  sglang = {
    read_as = "SGLang of 2026-07 and 2026-08 (configs/custom_all_reduce_v2.py of 0fbab45d and 09e7d8ed)",
    step = 16,            -- its kernels take multiples of this
    workspace = 16 * MIB, -- the most that its kernels take by default
    -- By the first number of the capability: the numbers of ranks, and those with which the switch adds.
    worlds = { [9] = { 2, 3, 4, 5, 6, 7, 8 }, [10] = { 2, 3, 4, 5, 6, 7, 8, 16 } },
    multicast = { [9] = { 4, 5, 6, 7, 8 }, [10] = { 5, 6, 7, 8, 16 } },
  },
  flashinfer = {
    read_as = "FlashInfer 0.6.18 (fb28d724)",
    worlds = { 2, 4, 8, 16 },
    largest = (1 << 31) - 1 >> 21 << 21, -- of a one-shot call: ranks * bytes; above it runs in two shots
    -- The names of its patterns for each fusion.
    patterns = {
      NONE = { "kAllReduce" },
      RESIDUAL_RMS_NORM = { "kARResidualRMSNorm" },
      RESIDUAL_RMS_NORM_QUANT_FP8 = { "kARResidualRMSNormFP8Quant", "kARResidualRMSNormOutFP8Quant" },
      RESIDUAL_RMS_NORM_QUANT_NVFP4 = { "kARResidualRMSNormFP4Quant", "kARResidualRMSNormOutFP4Quant" },
    },
  },
  trtllm_autotuner = {
    read_as = "after pull request 10336, before 16902",
    op = "trtllm::tunable_allreduce::allreduce",
    runner = "AllReduceRunner",
    tactics = { 0, 4, 5, 8 }, -- numbers of strategies in its enum: NCCL, ONESHOT, TWOSHOT, NCCL_SYMMETRIC
    in_workspace = { 4, 5 },  -- of these, those that need the workspace
    workspace_bytes = 64 * MIB,
    -- Its numbers of operations. Those that quantise have an input of a shape that was not verified.
    fusions = {
      NONE = { name = "NONE", number = 0 },
      RESIDUAL_RMS_NORM = { name = "RESIDUAL_RMS_NORM", number = 1, has_norm = true },
    },
    -- The numbers in the tensor that describes the workspace: three for each rank, and one of flags.
    pointers = function(tp) return 3 * tp + 1 end,
  },
  inductor = {
    -- `name`: of the collective in PyTorch's traces; input, output: whether a rank has all or its share of
    -- the elements that a row counts.
    ops = {
      allreduce = { name = "allreduce", kernel = "ncclDevKernel_AllReduce", input = "whole",
        output = "whole" },
      allgather = { name = "_allgather_base", kernel = "ncclDevKernel_AllGather", input = "share",
        output = "whole" },
      reducescatter = { name = "_reduce_scatter_base", kernel = "ncclDevKernel_ReduceScatter",
        input = "whole", output = "share" },
      alltoall = { name = "all_to_all", kernel = "ncclDevKernel_SendRecv", input = "whole",
        output = "whole" },
    },
    dtypes = { bfloat16 = "BFloat16", float16 = "Half", float32 = "Float" },
  },
}
