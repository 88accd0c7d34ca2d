-- The commands of gentables trace, one row each: name and one line of help; the file is trace/NAME.lua, which
-- returns what a verb's file returns (see verbs.lua).
return {
  { name = "report", help = "what each rank did: time line, ops, kernels, collectives" },
  { name = "gemm", help = "the GEMMs of every rank: shapes, times, TFLOP/s" },
  { name = "variance", help = "the GEMMs whose kernel time varies most" },
  { name = "timestamps", help = "when their shortest and longest instance began" },
  { name = "overlap", help = "which collectives overlapped the longest instance" },
  { name = "collectives", help = "collectives over ranks: latency, wait, skew, bandwidths, stragglers" },
  { name = "plots", help = "pictures of how much kernel times vary: boxes, violins, interaction" },
  { name = "merge", help = "one trace of all ranks, for Perfetto" },
  { name = "compare", help = "reports side by side: of traces, over threads, channels or sweeps" },
  { name = "pipeline", help = "all of it for a sweep, in the documented tree" },
}
