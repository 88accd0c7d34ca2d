-- Jobs that speak with a program that lies: sweep, tune, workload and replay.
local liar = require "fuzz.structure.liar"

local candidates = [[
candidate name=MPI plugin=0 usual=1 ops=allreduce,allgather reason=
candidate name=ONESHOT plugin=0 usual=1 ops=allreduce reason=
libraries hash=00000000000000ff
]]

local function pass()
  local lines = { "text of a library", "progress done=1 of=2" }
  for id = 1, 2 do
    lines[#lines + 1] = ("row id=%d strategy=MPI time_us=1.5 low_us=1.0 high_us=2.0 samples=5 min_us=1.0 "
      .. "p95_us=2.0 p99_us=2.0 bound_us=0.5 bits=0 mode=eager accumulate=native placement=dedicated "
      .. "skew_us=0.1 epilogue=none mean_of_max_us=1.5 max_of_means_us=1.5 mean_us=1.5 op_us=0.0"):format(id)
    lines[#lines + 1] = ("none id=%d strategy=ONESHOT epilogue=none reason=no reason"):format(id)
  end
  lines[#lines + 1] = "pass total_us=1.0 calls_us=1.0 reduce_us=0.1 op_total_us=0.0 op_calls_us=0.0"
  return table.concat(lines, "\n") .. "\n"
end

local function steps()
  local lines = { "hello protocol=4 program=liar world_size=2 cores=2 isa=avx2 core=Haswell library=OpenBLAS",
    "accepted channels=2 threads=1 bytes=2560 backend=host clock=host_thread note=",
    "used device=a processor", "used library=OpenBLAS 0.3.21 on Haswell", "progress done=1 of=2",
    "progress done=2 of=2" }
  for i = 0, 1 do
    lines[#lines + 1] = ("round number=%d gemms_us=1.0 serial_us=80.6 overlapped_us=8.0 traced_us=9.9 "
      .. "gemms_traced_us=8.4 gemms_beside_us=5.7 gemms_alone_us=5.7"):format(i)
  end
  for _, name in ipairs { "gemms", "serial", "overlapped", "traced", "gemms_traced", "gemms_beside",
    "gemms_alone", "exposed", "left" } do
    lines[#lines + 1] = ("time name=%s median=1.5 low=1.0 high=2.0 min=1.0 samples=2"):format(name)
  end
  for _, name in ipairs { "hidden", "overlapped_to_serial", "overlapped_to_gemms", "tracing", "cost" } do
    lines[#lines + 1] = ("ratio name=%s median=0.5 low=0.1 high=0.9 min=0.1 samples=2"):format(name)
  end
  for i = 0, 1 do
    lines[#lines + 1] = ("rank number=%d gemm_us=3.2 gemm_alone_us=3.1 gemm_cpu_us=3.2 communication_us=2.6 "
      .. "communication_cpu_us=2.6 await_us=6.4"):format(i)
  end
  return table.concat(lines, "\n") .. "\ndone\n"
end

local replayed = table.concat({ "hello protocol=1 threads=2 backend=host device=a processor",
  "present name=openblas version=0.3.21 core=Haswell threads=2", "absent reason=no oneDNN", "ready",
  "replayed id=gemm_001 by=openblas computed=float32 kernel=sgemm warm_mean_us=2.5 warm_median_us=2.0 "
    .. "warm_low_us=1.5 warm_high_us=3.0 warm_samples=5 cold_mean_us=3.5 cold_median_us=3.0 cold_low_us=2.5 "
    .. "cold_high_us=4.0 cold_samples=5 note=" }, "\n") .. "\n"

local trace = [==[
{"distributedInfo": {"rank": 0, "world_size": 2}, "traceEvents": [
{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 10, "dur": 9,
 "args": {"External id": 1,
 "Input Dims": [[64, 64], [64, 64]], "Input type": ["float", "float"], "Input Strides": [[64, 1], [64, 1]],
 "Concrete Inputs": ["", ""]}},
{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": 11, "dur": 1,
 "args": {"correlation": 1, "External id": 1}},
{"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 12, "dur": 5,
 "args": {"correlation": 1, "External id": 1, "device": 0, "stream": 7}}]}
]==]

local workload = [[
return { name = "x", tokens = 8, steps = 2, warm_up = 1,
  layers = { { name = "l", gemms = { { name = "g", n = 8, k = 8 } } } } }
]]

local version_of_workload = "gentables-workload protocol=4 program=liar\n"
local launcher = "env RANKS={ranks}"

return {
  liar.job({ "sweep", "sweep", "in/spec.lua", "--out", "out/rows", "--exhaustive", "--patience", "2",
    "--bench", "in/bench/program", "--launcher", launcher, files = { ["in/spec.lua"] = liar.spec },
    partial = true }, "in/bench", liar.version, { answers = liar.sweep_answers { 1, 4 } }),
  liar.job({ "tune", "tune", "--op", "allreduce", "--sizes", "1K,2K", "--sync", "both", "--timeout", "2",
    "--bench", "in/bench/program", "--launcher", launcher, "--cache", "out/cache.json", "--out", "out/tuned",
    partial = true }, "in/bench", liar.version, { candidates = candidates, pass = pass() }),
  liar.job({ "workload run", "workload", "run", "-f", "in/w.lua", "-p", "2", "--backend", "host",
    "--patience", "2", "--program", "in/bench/program", "--launcher", launcher,
    files = { ["in/w.lua"] = workload } }, "in/bench", version_of_workload, { answers = steps() }),
  liar.job({ "workload sweep", "workload", "sweep", "-f", "in/w.lua", "-p", "2", "--backend", "host",
    "-c", "2", "-t", "1", "--patience", "2", "-o", "out/sweep", "--program", "in/bench/program", "--launcher",
    launcher, files = { ["in/w.lua"] = workload }, partial = true },
    "in/bench", version_of_workload, { answers = steps() }),
  liar.job({ "replay", "replay", "in/rank_0.json", "--out", "out/replay", "--program", "in/bench/program",
    "--samples", "5", "--csv", "--patience", "2", files = { ["in/rank_0.json"] = trace }, partial = true },
    "in/bench", "", { answers = replayed }),
}
