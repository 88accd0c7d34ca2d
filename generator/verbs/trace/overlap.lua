-- gentables trace overlap: the GEMMs of trace variance, with the collectives of the same rank that overlapped
-- the longest instance, or with --all each instance.
local digest_folder = require "trace.digests.digest_folder"

return digest_folder.command(require("trace.gemm.gemm_command").of("overlap",
  "As timestamps, with the collectives over the longest instance: top{K}_..._with_collective_overlap.csv.",
  require("trace.runs.example").of "trace overlap {SWEEP} --out variance"))
