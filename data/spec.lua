return {
  arch = "sm90",
  tp = { 2, 4, 8 },
  hidden_sizes = { 128, 256, 512, 1024, 2048, 4096, 8192 },
  num_tokens = { 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384 },
  strategies = { "ONESHOT", "TWOSHOT", "NCCL", "NCCL_SYMMETRIC" },
}
