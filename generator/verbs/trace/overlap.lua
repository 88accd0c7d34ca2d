-- gentables trace overlap: the GEMMs of trace variance, with the collectives of the same rank that overlapped
-- the longest instance, or with --all each instance.
return require("trace.gemm.gemm_command").of("overlap",
  "As timestamps, with the collectives over the longest instance: top{K}_..._with_collective_overlap.csv.",
  "gentables trace overlap experiments/sweep_20251124_222204 --out variance")
