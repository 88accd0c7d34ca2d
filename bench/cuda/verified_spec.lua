-- The spec of what verify.sh measures; with an arch that ends with "-loopback" all ranks share one GPU: real
-- kernels, unreal links.
return {
  arch = "ARCH",
  tp = { 2, 4, 8 },
  hidden_sizes = { 7168 },
  num_tokens = { 1, 2, 4, 8, 16, 64, 256, 1024, 4681 },
  limits = { message_bytes = 64 * 1024 * 1024, min_samples = 10, max_samples = 100, cell_us = 200000 },
  table = { dtype = "bfloat16", op = "allreduce", mode = "graph" },
}
