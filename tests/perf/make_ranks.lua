-- Writes the traces of a run of many ranks, each with its own number and times, for tests/perf/digests.sh:
--
--   gentables lua make_ranks.lua FOLDER RANKS COLLECTIVES LARGE BYTES
--
-- FOLDER/rank_R.json for R from 0 to RANKS - 1: COLLECTIVES allreduces of all ranks, each after a GEMM. The
-- first LARGE ranks also have operations element by element, for at least BYTES in all.
local folder, ranks, collectives = arg[1], tonumber(arg[2]), tonumber(arg[3])
local large, bytes = tonumber(arg[4]), tonumber(arg[5])

local LAYER = [==[
{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": %d, "dur": 40,
 "args": {"External id": %d, "Input Dims": [[%d, 4096], [4096, 4096]],
 "Input type": ["c10::BFloat16", "c10::BFloat16"], "Input Strides": [[4096, 1], [4096, 1]],
 "Concrete Inputs": ["", ""]}},
{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": %d, "dur": 5,
 "args": {"correlation": %d, "External id": %d}},
{"ph": "X", "cat": "kernel", "name": "nvjet_tst_128x256_64x4_2x1_v_bz_TNT", "pid": 0, "tid": 7, "ts": %d,
 "dur": %.3f, "args": {"correlation": %d, "External id": %d, "device": 0, "stream": 7, "grid": [8, 16, 1]}},
{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernelExC", "pid": 1, "tid": 1, "ts": %d, "dur": 5,
 "args": {"correlation": %d, "External id": %d}},
{"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage)",
 "pid": 0, "tid": 20, "ts": %.3f, "dur": %.3f, "args": {"correlation": %d, "External id": %d, "device": 0,
 "stream": 20, "Collective name": "allreduce", "In msg nelems": %d, "Out msg nelems": %d,
 "dtype": "BFloat16", "Group size": %d, "Process Group Name": "0", "Process Group Ranks": "[0, 1, ..., %d]",
 "In split size": "[]", "Out split size": "[]"}},
]==]

local ELEMENTWISE = [==[
{"ph": "X", "cat": "cpu_op", "name": "aten::add", "pid": 1, "tid": 1, "ts": %d, "dur": 3,
 "args": {"External id": %d, "Input Dims": [[%d, 4096], [%d, 4096], []],
 "Input type": ["c10::BFloat16", "c10::BFloat16", "Scalar"], "Input Strides": [[4096, 1], [4096, 1], []],
 "Concrete Inputs": ["", "", "1"]}},
{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": %d, "dur": 1,
 "args": {"correlation": %d, "External id": %d}},
{"ph": "X", "cat": "kernel", "pid": 0,
 "name": "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<c10::BFloat16>>",
 "tid": 7, "ts": %d, "dur": 2.5, "args": {"correlation": %d, "External id": %d, "device": 0,
 "stream": 7, "grid": [64, 1, 1], "block": [128, 1, 1]}},
]==]

math.randomseed(20261127)

local function layers(rank)
  local out = {}
  for i = 1, collectives do
    local ts, gemm, all = 1000 * i, 2 * i, 2 * i + 1
    local tokens, late = 2 ^ (i % 8) | 0, math.random() * 20 + rank % 7
    out[i] = LAYER:format(ts, gemm, tokens, ts + 10, gemm, gemm, ts + 50, 100 + math.random() * 10, gemm,
      gemm, ts + 20, all, all, ts + 200 + late, 150 - late, all, all, tokens * 4096, tokens * 4096, ranks,
      ranks - 1)
  end
  return table.concat(out)
end

local function elementwise(size)
  local out, id, written = {}, 1000000, 0
  while written < size do
    local ts, tokens = 1000 * (collectives + 2) + 10 * (id - 1000000), 2 ^ (id % 8) | 0
    out[#out + 1] = ELEMENTWISE:format(ts, id, tokens, tokens, ts + 1, id, id, ts + 4, id, id)
    written, id = written + #out[#out], id + 1
  end
  return table.concat(out)
end

local more = elementwise(bytes)
for rank = 0, ranks - 1 do
  local file = assert(io.open(("%s/rank_%d.json"):format(folder, rank), "w"))
  assert(file:write(('{"schemaVersion": 1, "baseTimeNanoseconds": 1760000000000000000, "distributedInfo": '
    .. '{"backend": "nccl", "rank": %d, "world_size": %d}, "traceEvents": [\n'):format(rank, ranks),
    layers(rank), rank < large and more or "",
    '{"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#8", "pid": 1, "tid": 1, "ts": 0, "dur": ',
    ('%d}\n]}\n'):format(1000 * collectives)))
  assert(file:close())
end
