-- gentables trace overlap: the collectives of the same rank that overlapped the longest instance of these
-- GEMMs.
return require("trace.gemm.gemm_command").of("overlap",
  "As timestamps, with the collectives over the longest instance: top{K}_..._with_collective_overlap.csv.",
  "gentables trace overlap experiments/sweep_20251124_222204 --out variance")
