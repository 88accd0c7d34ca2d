-- Examples of commands that read traces: first a command that makes some, of a small workload on this
-- machine.
local example = {}

example.SWEEP = "experiments/small"
example.TRACES = example.SWEEP .. "/1thread/nccl_2channels/torch_profiler"
example.TRACE = example.TRACES .. "/rank0/trace_step19.json"

-- The example of a command. {SWEEP}, {TRACES} and {TRACE} in it are the sweep, the folder of the traces of
-- its only configuration, and the trace of rank 0.
function example.of(command)
  return ("gentables workload sweep -f small -p 2 -c 2 -t 1 -o %s\n  gentables %s"):format(example.SWEEP,
    (command:gsub("{(%u+)}", example)))
end

return example
