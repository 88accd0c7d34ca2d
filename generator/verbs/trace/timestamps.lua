-- gentables trace timestamps: the GEMMs of trace variance, with the start of the shortest and the longest
-- instance.
return require("trace.gemm.gemm_command").of("timestamps",
  "As variance, with the start of the shortest and the longest instance: top{K}_..._with_timestamps.csv.",
  require("trace.runs.example").of "trace timestamps {SWEEP} --out variance")
