-- gentables trace variance: the GEMMs of each rank with the most varying kernel time.
return require("trace.gemm.gemm_command").of("variance",
  "The GEMMs of each rank with the most varying kernel time: top{K}_gemm_kernels_time_variance.csv.",
  "gentables trace variance experiments/sweep_20251124_222204 --top-k 5 --threads 256 --out variance")
