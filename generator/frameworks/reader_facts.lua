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
}
