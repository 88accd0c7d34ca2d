-- What was measured on one NVIDIA H200 whose ranks share it: real kernels, unreal links. The table shows what
-- a table of GPUs looks like; its times hold for no ranks with a GPU each.
return {
  arch = "sm90-loopback",
  tp = { 2, 4, 8 },
  dtypes = { "bfloat16" },
  fusions = { "NONE", "RESIDUAL_RMS_NORM", "RESIDUAL_RMS_NORM_QUANT_FP8" },
  hidden_sizes = { 4096, 8192 },
  num_tokens = { 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096 },

  -- The others need a GPU for each rank.
  strategies = { "ONESHOT", "TWOSHOT", "ONESHOT_NATIVE", "TWOSHOT_NATIVE" },

  limits = {
    message_bytes = 64 * 1024 * 1024,
    min_samples = 10,
    max_samples = 100,
    cell_us = 20000,
    launches = 5,
  },
  table = { dtype = "bfloat16", op = "allreduce", mode = "graph" },
}
