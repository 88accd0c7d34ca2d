-- The benchmark of FlashInfer's fused allreduce in vLLM and SGLang (benchmark_fused_collective.py): its
-- printed output, with the number of ranks from --tp, or its Markdown. FlashInfer's TensorRT-LLM kernels are
-- ONESHOT and TWOSHOT. The framework's own calls, and calls without a residual, have no strategy here and are
-- skipped. Earlier versions print seq_len for num_tokens.
local FUSIONS = { rmsnorm = "RESIDUAL_RMS_NORM", rmsnorm_fp8_quant = "RESIDUAL_RMS_NORM_QUANT_FP8",
  rmsnorm_fp4_quant = "RESIDUAL_RMS_NORM_QUANT_NVFP4" }
local STRATEGIES = { oneshot = "ONESHOT", twoshot = "TWOSHOT" }

-- "Flashinfer Trtllm Fused Allreduce Rmsnorm Oneshot", or with underscores -> strategy, fusion; nil: an
-- operation without a strategy here.
local function meaning(operation)
  local words = operation:lower():gsub("%s+", "_")
  local fusion, way = words:match("^flashinfer_trtllm_fused_allreduce_(.-)_(%a+)$")
  if not fusion then fusion, way = words:match("^flashinfer_fused_allreduce_(.-)_(%a+)$") end
  return STRATEGIES[way], FUSIONS[fusion]
end

-- The facts in the lines above a table.
local function read_config(source, line, text, state)
  local tokens = text:match("num_tokens=(%d+)") or text:match("seq_len=(%d+)")
  if tokens then
    state.num_tokens = source:whole(line, "num_tokens", tokens, 1, source.SHAPE_MOST)
    state.dtype, state.residual = nil, nil
  end
  state.world_size = tonumber(text:match("^%*%*World Size:%*%*%s*(%d+)")) or state.world_size
  local hidden = text:match("hidden_dim=(%d+)") or text:match("^%*%*Hidden Dimension:%*%*%s*(%d+)")
  if hidden then state.hidden_size = source:whole(line, "hidden dimension", hidden, 1, source.SHAPE_MOST) end
  local dtype = text:match("dtype=([%w._]+)")
  if dtype then state.dtype = source:name(line, "dtypes", "dtype", (dtype:gsub("^torch%.", ""))) end
  local residual = text:match("residual=(%a+)")
  if residual then state.residual = residual == "yes" end
  if text:find("with residual", 1, true) then state.residual = true end
  if text:find("no residual", 1, true) then state.residual = false end
end

-- A line of a table as operation and time; nil: another line.
local function result_of(text)
  local operation, time = text:match("^|%s*(.-)%s*|%s*(%S+)%s*|")
  if not operation then operation, time = text:match("^([%w_]+)%s+(%S+)%s+%S+%s*$") end
  if operation and operation:lower():find("^[fs][lt][a-z_ ]*allreduce") then return operation, time end
end

local function enter(source, line, state, operation, time, out)
  for _, name in ipairs { "num_tokens", "hidden_size", "dtype" } do
    if not state[name] then source:fail(line, "a time before the line with its %s", name) end
  end
  local strategy, fusion = meaning(operation)
  if not (strategy and fusion) then return source:leave_out("of operations without a strategy") end
  if state.residual == false then return source:leave_out("without a residual") end
  local record = source.record { line = line, world_size = source:world_size(state.world_size, line),
    dtype = state.dtype, num_tokens = state.num_tokens, hidden_size = state.hidden_size, fusion = fusion,
    size = state.num_tokens * state.hidden_size * source.bytes_of(state.dtype), strategy = strategy }
  if time == "FAILED" then
    record.reason = "FlashInfer's benchmark: FAILED"
    out.no_time[#out.no_time + 1] = record
  else
    record.time_us = source:time(line, "Time (ms)", time) * 1000
    out.rows[#out.rows + 1] = record
  end
end

return function(source)
  local state, out = {}, { rows = {}, no_time = {}, facts = {} }
  for line, text in source:lines() do
    local operation, time = result_of(text)
    if operation then
      enter(source, line, state, operation, time, out)
    else
      read_config(source, line, text, state)
    end
  end
  return out
end
