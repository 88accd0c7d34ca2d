-- The smallest useful sweep: a second or so.
return {
  arch = "host",
  tp = { 2 },
  dtypes = { "float32" },
  fusions = { "NONE" },
  hidden_sizes = { 1024 },
  num_tokens = { 1, 16 },
  strategies = { "MPI", "ONESHOT" },
  limits = { cell_us = 20000 },
  table = { dtype = "float32", op = "allreduce", mode = "eager" },
}
