-- gentables trace variance: the GEMMs of each rank with the most varying kernel time.
local digest_folder = require "trace.digests.digest_folder"

return digest_folder.command(require("trace.gemm.gemm_command").of("variance",
  "The GEMMs of each rank with the most varying kernel time: top{K}_gemm_kernels_time_variance.csv.",
  require("trace.runs.example").of "trace variance {SWEEP} --top-k 5 --out variance"))
