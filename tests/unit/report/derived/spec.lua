-- Rows of best_strategy_svg.sh: two strategies at some shapes of a small grid, from a sweep on two cores; the
-- rest of the grid is derived.
return {
  arch = "host",
  tp = { 2, 4 },
  dtypes = { "bfloat16" },
  fusions = { "NONE" },
  hidden_sizes = { 1024, 2880, 8192 },
  num_tokens = { 1, 4, 16, 64, 256 },
  limits = { message_bytes = 8 * 1024 * 1024, min_samples = 10, max_samples = 1000, cell_us = 400000 },
  table = { dtype = "bfloat16", op = "allreduce", mode = "eager" },
}
