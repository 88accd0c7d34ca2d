-- The limits of a step. steps.lua and description.lua check a workload against them before any process
-- starts; gentables-workload, which has them from templates/bench/workload_limits.h.tmpl, checks its input.
return {
  items = 100000, -- GEMMs, collectives or actions of a step
  longest = 1 << 20, -- m, n or k of a GEMM
  name = 63, -- characters of a GEMM's or a collective's name
  elements = 2147483647, -- of a collective on a rank: MPI counts them in int
  products = (1 << 22) - 1, -- summed up over all ranks: a float32 is exact for sums of numbers up to 2
}
