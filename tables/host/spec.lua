-- What `gen-tables` measures on this machine. Change it and run `gen-tables` again: only what is new is
-- measured.
return {
  -- Names the rows and the table: host, or host-NAME to keep several machines apart.
  arch = "host",

  -- How many ranks take part, 2 to 16. Sizes above the number of cores work too; their rows are marked.
  tp = { 2, 4 },

  -- nodes = { 1, 2 },     -- on how many nodes, the same number of ranks on each; left out: one node
  -- ranks_per_node = 2,   -- how many; left out: any

  -- bfloat16, float16, float32.
  dtypes = { "bfloat16" },

  -- What is computed on the sum: nothing; residual add and RMSNorm; and then a quantiser.
  fusions = {
    "NONE",
    "RESIDUAL_RMS_NORM",
    "RESIDUAL_RMS_NORM_QUANT_FP8",
    "RESIDUAL_RMS_NORM_QUANT_NVFP4",
  },

  -- A message is hidden size x tokens x bytes of the dtype: here from 2 KiB on.
  hidden_sizes = { 1024, 2880, 4096, 8192 },
  num_tokens = { 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024 },

  -- strategies = { "MPI", "ONESHOT", "TWOSHOT" },  -- left out: all that run on the host

  limits = {
    -- Larger messages are left out, and stand as unmeasured in the table.
    message_bytes = 8 * 1024 * 1024,
    -- Calls per strategy and cell, and the time for all strategies of a cell together, in microseconds.
    -- Where the fewest calls take longer than that, the cell does.
    min_samples = 10,
    max_samples = 1000,
    cell_us = 400000,
    -- seconds = 60,  -- for measuring, all TP sizes together; 0: no limit
  },

  -- What formats hold that have no dtype, operation or mode of their own.
  table = { dtype = "bfloat16", op = "allreduce", mode = "eager" },
}
