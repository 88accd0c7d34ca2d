-- Prefill and decode of a trace with annotations for neither: from the calls of attention, by their shapes
-- or the names of their kernels. A call with one row of Q for each request decodes; one with more prefills;
-- one that has the rows of a single prefill and one of each other request is mixed.
--
-- No phase is inferred of a training, nor of a trace with attention in neither decode nor pages of a cache:
-- it may be an encoder.
local arguments = require "trace.ops.arguments"
local families = require "trace.ops.families"
local perf_model = require "trace.ops.perf_model"
local sequences = require "base.sequences"

local inferred_phases = {}

-- Ops that begin a step of a model, if they are between two phases.
local EMBEDDING = "aten::embedding"

-- Texts in the names of kernels: the first that a name in lower case has decides. Paged attention of vLLM
-- decodes; FlashInfer's and SGLang's kernels name their phase.
local kernel_words = {
  { "prefill", "prefill" }, { "extend", "prefill" }, { "batchdecode", "decode" },
  { "singledecode", "decode" }, { "decode%f[^%l]", "decode" }, { "paged_attention_v[12]_kernel", "decode" },
}

-- The phase of a kernel's name, or nil.
function inferred_phases.of_kernel(name)
  local words = name:lower()
  return sequences.first(kernel_words, function(row) return words:find(row[1]) and row[2] or nil end)
end

-- ---- one call ----------------------------------------------------------------------------------

local function values_of(perf)
  local out = {}
  for _, param in ipairs(perf.params) do out[param[1]] = param[2] end
  return out
end

-- Of requests of several lengths: B requests, N_Q rows each on average, and the longest, if it is known.
local function phase_of_varlen(op, call, at)
  local rows, longest = at.B * at.N_Q, arguments.given(call, op.longest - 1)
  if longest == 1 or not longest and rows <= at.B then return "decode" end
  if longest and at.B > 1 and rows == longest + at.B - 1 then return "mixed" end
  return "prefill"
end

-- The evidence of a call of attention: { phase, is_served (in pages of a cache) }; {}: none.
local function evidence_of(op, call)
  local perf = perf_model.of(op, call)
  if not perf then return {} end
  local at = values_of(perf)
  if op.family == "varlen_attention" then
    return { phase = phase_of_varlen(op, call, at), is_served = at.paged }
  end
  return { phase = at.N_Q > 1 and "prefill" or at.N_KV > 1 and "decode" or nil }
end

-- ---- all calls ---------------------------------------------------------------------------------

local ATTENTION = { sdpa = true, varlen_attention = true }

-- The names that count, { [name] = op's row, or true }; nil: the trace is of a training.
local function names_of(rank)
  local wanted = {}
  for _, name in ipairs((select(2, rank.analysis:op_names()))) do
    if name:find("^autograd::engine::") then return nil end
    local op = families.op(name)
    if op and ATTENTION[op.family] then wanted[name] = op end
    if name == EMBEDDING then wanted[name] = true end
  end
  for _, row in ipairs(rank.analysis:kernel_rows()) do
    if inferred_phases.of_kernel(row.kernel) then wanted[row.kernel] = true end
  end
  return wanted
end

local function no_kernels() return {} end

-- The calls with a phase, and those of embeddings: { start, phase (nil: of an embedding), from }.
local function calls_of(rank, wanted)
  local known, out, is_served = {}, {}, false
  for _, call in ipairs(rank.analysis:calls(wanted)) do
    local op, found = wanted[call.name], nil
    if call.name == EMBEDDING then
      found = {}
    elseif op == true then
      found = { phase = inferred_phases.of_kernel(call.name), is_served = true, from = "names of kernels" }
    elseif call.arguments then
      local key = ("%s %d"):format(call.name, call.arguments)
      known[key] = known[key] or evidence_of(op, rank:call_with(call.arguments, no_kernels))
      found = known[key].phase and known[key]
    end
    if found then
      out[#out + 1] = { start = call.start, phase = found.phase, from = found.from or "shapes of attention" }
      is_served = is_served or found.is_served or found.phase == "decode"
    end
  end
  return is_served and out or {}
end

-- The parts of a trace's time in order, { phase, from, count (of calls), start, stop }: each from the first
-- call of its phase, or the last embedding before it, to the next part. {}: nothing is inferred. Also returns
-- the calls, for `within`.
function inferred_phases.of(rank)
  local wanted = names_of(rank)
  local calls = wanted and calls_of(rank, wanted) or {}
  local parts, embedding = {}, nil
  for _, call in ipairs(calls) do
    local last = parts[#parts]
    if not call.phase then
      embedding = call.start
    else
      if not last or last.phase ~= call.phase then
        local start = last and (embedding or call.start) or -math.huge
        if last then last.stop = start end
        last = { phase = call.phase, from = call.from, count = 0, start = start, stop = math.huge }
        parts[#parts + 1] = last
      end
      last.count, embedding = last.count + 1, nil
    end
  end
  return parts, calls
end

-- The phase of a step by the calls in its time, and what it is inferred from; nil: there are none.
function inferred_phases.within(calls, start, stop)
  local inside = sequences.filter(calls, function(call)
    return call.phase and call.start >= start and call.start < stop
  end)
  if #inside == 0 then return nil end
  local found = sequences.distinct(sequences.field(inside, "phase"))
  return #found > 1 and "mixed" or found[1], inside[1].from
end

return inferred_phases
