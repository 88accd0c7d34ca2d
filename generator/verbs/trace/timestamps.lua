-- gentables trace timestamps: the GEMMs of trace variance, with the start of the shortest and the longest
-- instance.
local digest_folder = require "trace.digests.digest_folder"

return digest_folder.command(require("trace.gemm.gemm_command").of("timestamps",
  "As variance, with the start of the shortest and the longest instance: top{K}_..._with_timestamps.csv.",
  require("trace.runs.example").of "trace timestamps {SWEEP} --out variance"))
