-- The commands of gentables trace, one row each: name and one line of help; the file is trace/NAME.lua, which
-- returns a verb's table (see verbs.lua).
return {
  { name = "report", help = "the work of each rank: time line, ops, kernels, collectives" },
  { name = "gemm", help = "the GEMMs of every rank: shapes, times, TFLOP/s" },
  { name = "variance", help = "the GEMMs with the most varying kernel time" },
  { name = "timestamps", help = "as variance, with the start of the shortest and longest instance" },
  { name = "overlap", help = "as timestamps, with the collectives over the longest instance" },
  { name = "collectives", help = "collectives over ranks: latency, wait, skew, bandwidths, stragglers" },
  { name = "digest", help = "a small digest of each trace, which the commands over ranks read instead" },
  { name = "plots", help = "pictures of varying kernel times: boxes, violins, interaction" },
  { name = "merge", help = "one trace of all ranks, for Perfetto" },
  { name = "compare", help = "reports side by side: of traces, over threads, channels or sweeps" },
  { name = "pipeline", help = "all reports of a sweep, in the documented tree" },
}
