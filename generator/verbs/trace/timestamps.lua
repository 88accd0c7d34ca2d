-- gentables trace timestamps: the start of the shortest and the longest instance of these GEMMs.
return require("trace.gemm.gemm_command").of("timestamps",
  "As variance, with the start of the shortest and the longest instance: top{K}_..._with_timestamps.csv.",
  "gentables trace timestamps experiments/sweep_20251124_222204 --out variance")
