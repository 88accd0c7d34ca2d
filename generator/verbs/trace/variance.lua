-- gentables trace variance: the GEMMs of each rank with the most varying kernel time.
return require("trace.gemm.command").of("variance",
  "The GEMMs whose kernel time varies most, of each rank: top{K}_gemm_kernels_time_variance.csv.",
  "gentables trace variance experiments/sweep_20251124_222204 --top-k 5 --threads 256 --out variance")
