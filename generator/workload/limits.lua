-- What a step can be at most. steps.lua and description.lua check a workload against these before anything
-- starts; gentables-workload, which has them from templates/bench/workload_limits.h.tmpl, its input.
return {
  items = 100000, -- GEMMs, collectives or actions of a step
  longest = 1 << 20, -- m, n or k of a GEMM
  name = 63, -- characters of a GEMM's or a collective's name
  elements = 2147483647, -- of a collective on a rank: MPI counts them in int
  products = (1 << 22) - 1, -- summed up, over all ranks: of numbers up to 2 a float32 holds them exactly
}
