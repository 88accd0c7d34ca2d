-- The cells to measure on GPUs. With -DGENTABLES_ARCH=sm90 CMake copies this file to tables/sm90, with that
-- arch, and `gen-tables` measures the cells of the copy. After a change of the copy it measures only new cells.
return {
  -- Names the rows and the table: the GPU's SM version, such as sm90; gpu: that of the GPU at hand. With
  -- -loopback all ranks share one GPU, whose times hold for no other use.
  arch = "gpu",

  -- TP sizes: at most the number of GPUs (with -loopback any), and among those that the bench has kernels for
  -- (GENTABLES_CUDA_TP of the build).
  tp = { 2, 4, 8 },

  -- bfloat16, float16, float32.
  dtypes = { "bfloat16" },

  -- The epilogue: none; residual add and RMSNorm; the same and a quantiser.
  fusions = {
    "NONE",
    "RESIDUAL_RMS_NORM",
    "RESIDUAL_RMS_NORM_QUANT_FP8",
    "RESIDUAL_RMS_NORM_QUANT_NVFP4", -- from SM version 100 on
  },

  -- A message is hidden size x tokens x bytes of the dtype.
  hidden_sizes = { 4096, 7168, 8192 },
  num_tokens = { 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096 },

  limits = {
    -- Larger messages are not measured; the table lists them as unmeasured.
    message_bytes = 64 * 1024 * 1024,
    -- Calls per strategy and cell, and the time for all strategies of a cell together, in microseconds.
    min_samples = 10,
    max_samples = 100,
    cell_us = 200000,
    seconds = 300, -- for measuring, all TP sizes together; 0: no limit
  },

  -- The cells in formats that have no dtype, op or mode. graph: calls in CUDA graphs, as in the decoding of
  -- servers.
  table = { dtype = "bfloat16", op = "allreduce", mode = "graph" },
}
