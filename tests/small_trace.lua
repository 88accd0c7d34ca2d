-- The profiler trace of one of two ranks, in JSON: GEMMs, launched and run, and collectives.
return function(rank)
  local events = {}
  for i = 1, 3 do
    events[i] = ([==[
{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": %d0, "dur": 9,
 "args": {"External id": %d, "Input Dims": [[64, 64], [64, 64]], "Input type": ["float", "float"]}},
{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": %d1, "dur": 1,
 "args": {"correlation": %d, "External id": %d}},
{"ph": "s", "id": %d, "pid": 1, "tid": 1, "ts": %d1, "cat": "ac2g", "name": "ac2g"},
{"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": %d2, "dur": %d,
 "args": {"correlation": %d, "External id": %d, "device": 0, "stream": 7, "grid": [1, 2, 3]}},
{"ph": "f", "id": %d, "pid": 0, "tid": 7, "ts": %d2, "cat": "ac2g", "name": "ac2g", "bp": "e"},
{"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#%d", "pid": 1, "tid": 1, "ts": %d0, "dur": 9},
{"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce_Sum_f32_RING_LL", "pid": 0, "tid": 9,
 "ts": %d3, "dur": 4, "args": {"correlation": 9%d, "device": 0, "stream": 9,
 "Collective name": "allreduce", "In msg nelems": 64, "Out msg nelems": 64, "dtype": "Float",
 "Group size": 2, "Process Group Name": "0", "Process Group Ranks": "[0, 1]", "Seq": %d}}]==]):gsub("%%d", i)
  end
  return ('{"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "a GPU", "numSms": 132}], '
    .. '"distributedInfo": {"rank": %d, "world_size": 2}, "traceEvents": [\n%s\n]}\n'):format(rank,
      table.concat(events, ",\n"))
end
