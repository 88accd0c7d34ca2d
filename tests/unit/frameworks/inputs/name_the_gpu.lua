-- Writes the provenance of rows files, with the name of a GPU: gentables lua name_the_gpu.lua NAME FILE...
local file = require "core.file"
local provenance = require "rows.provenance"
local rank_placement = require "lists.rank_placement"

for i = 2, #arg do
  local size, _, arch = rank_placement.of_file_name(arg[i])
  assert(provenance.write(arg[i], assert(file.read(arg[i])), { world_size = size, arch = arch,
    fingerprint = "f", machine = { cpu = "A CPU", cores = 8, gpu = "8 x " .. arg[1], mpi = "CUDA" },
    bench = { protocol = 1, hash = "h", isa = "avx512", compiler = "gcc-12" }, date = "2026-01-01",
    no_time = {}, devices = { { gpu = "0", name = (arg[1]:gsub(" ", "_")) } } }))
end
