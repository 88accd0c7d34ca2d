-- The spec of these rows; 8 nodes are predicted.
return {
  arch = "host",
  tp = { 2, 3, 4, 6 }, nodes = { 2, 3, 4, 6 }, ranks_per_node = 1, predict = { 8 },
  dtypes = { "float32" },
  fusions = { "NONE" },
  hidden_sizes = { 1024 },
  num_tokens = { 16, 32, 64, 128, 256 },
  strategies = { "MPI", "TWOLEVEL", "TWOLEVEL_SHARDED", "MPI_RECURSIVE_DOUBLING", "MPI_RING",
    "MPI_SEGMENTED_RING", "MPI_RABENSEIFNER", "MPI_HAN" },
  limits = { cell_us = 1000000, launches = 7, min_samples = 5 },
  table = { dtype = "float32" },
}
