-- Opens traces for analyses.
local opening = {}

-- core.trace.open for users' files: rejects a trace without any op, call of the runtime or GPU event, such as
-- one of JAX, because all its sheets would be empty. Returns the trace, or nil, message.
function opening.open(path, options)
  if path:find("%.digest$") then
    return nil, path .. ": is a digest, with the data for results over ranks; give the trace"
  end
  local trace, message = require("core.trace").open(path, options)
  if not trace then return nil, message end
  local info = trace:info()
  if info.host_events + info.gpu_events > 0 then return trace end
  trace:close()
  return nil, ("%s: none of its %d events has a category of torch's profiler (cpu_op, cuda_runtime, kernel, "
    .. "...); a trace of torch.profiler is required, not one of JAX or the like"):format(path, info.events)
end

return opening
