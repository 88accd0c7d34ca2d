-- Prefill and decode of a trace with annotations for neither: from the calls of attention, by their shapes
-- or the names of their kernels. A call with one row of Q for each request decodes; one with more prefills;
-- one that has the rows of a single prefill and one of each other request is mixed, and so is a step with
-- calls of both phases in each layer.
--
-- No phase is inferred of a training, nor of a trace with neither pages of a cache nor a cache that grows: it
-- may be an encoder. Calls that may be of either phase are UNCLEAR, and their time is of no part.
local arguments = require "trace.ops.arguments"
local families = require "trace.ops.families"
local ordering = require "base.ordering"
local perf_model = require "trace.ops.perf_model"
local sequences = require "base.sequences"

local inferred_phases = {}

local UNCLEAR = "unclear"

-- Ops that begin a step of a model, if they are between two phases.
local EMBEDDING = "aten::embedding"

-- Patterns of the names of kernels in lower case: a word of attention, and the first word of a phase decides.
-- Paged attention of vLLM decodes; FlashInfer's and SGLang's kernels name their phase.
local attention_words = { "attention", "attn", "%f[%l]mla%f[%L]", "kvcache", "fmha", "flash" }
local kernel_words = {
  { "prefill", "prefill" }, { "extend", "prefill" }, { "batchdecode", "decode" },
  { "singledecode", "decode" }, { "decode%f[^%l]", "decode" }, { "paged_attention_v[12]_kernel", "decode" },
}

-- The phase of a kernel's name, or nil.
function inferred_phases.of_kernel(name)
  local words = name:lower()
  if not sequences.any(attention_words, function(word) return words:find(word) end) then return nil end
  return sequences.first(kernel_words, function(row) return words:find(row[1]) and row[2] or nil end)
end

-- ---- one call ----------------------------------------------------------------------------------

local function values_of(perf)
  local out = {}
  for _, param in ipairs(perf.params) do out[param[1]] = param[2] end
  return out
end

-- Requests with so many rows or fewer, after earlier ones, may be of speculative decoding.
local MOST_SPECULATIVE = 8

-- Of `rows` of B requests of several lengths, and the longest in Q, if it is known, and in the cache.
local function phase_of_varlen(rows, requests, longest, longest_cached)
  if requests == 1 then longest = longest or rows end
  if longest == 1 or not longest and rows <= requests then return "decode" end
  if not longest then return UNCLEAR end
  local share = rows / (requests * longest)
  if longest <= MOST_SPECULATIVE and longest < longest_cached then
    return share >= 0.75 and "decode" or UNCLEAR
  end
  if requests > 1 and rows == longest + requests - 1 then return "mixed" end
  if share >= 0.25 then return "prefill" end
  -- Of many requests, more than one are long, and the others have few rows on average.
  local is_mixed = requests >= 8 and rows - longest < MOST_SPECULATIVE * (requests - 1)
  return is_mixed and "mixed" or UNCLEAR
end

-- The evidence of a call of attention: { phase, is_paged, keys (of a decode without pages) }; {}: none.
local function evidence_of(op, call)
  local perf = perf_model.of(op, call)
  if not perf then return {} end
  local at = values_of(perf)
  if op.family == "varlen_attention" then
    return { phase = phase_of_varlen(at.B * at.N_Q, at.B, arguments.given(call, op.longest - 1), at.N_KV),
      is_paged = at.paged }
  end
  if at.N_Q > 1 then return { phase = "prefill" } end
  return at.N_KV > 1 and { phase = "decode", keys = at.N_KV } or {}
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

-- Whether an op around a call has a phase, which then decides.
local function is_below_phase(all, call)
  local above = all[call.above]
  return above and (above.phase or is_below_phase(all, above))
end

-- The calls with a phase, and those of embeddings, as analysis:calls has them, with phase (nil: of an
-- embedding), from, and the rest of their evidence.
local function calls_of(rank, wanted)
  local known, all = {}, rank.analysis:calls(wanted)
  for _, call in ipairs(all) do
    local op = wanted[call.name]
    if op == true then
      call.phase, call.from = inferred_phases.of_kernel(call.name), "names of kernels"
    elseif call.arguments then
      local key = ("%s %d"):format(call.name, call.arguments)
      known[key] = known[key] or evidence_of(op, rank:call_with(call.arguments, no_kernels))
      call.phase, call.from = known[key].phase, "shapes of attention"
      call.is_paged, call.keys = known[key].is_paged, known[key].keys
    end
  end
  return sequences.filter(all, function(call)
    return call.name == EMBEDDING or call.phase and not is_below_phase(all, call)
  end)
end

-- ---- steps -------------------------------------------------------------------------------------

-- The calls of each thread, in runs of one phase up to the next embedding: { { phase, from, track, count (of
-- calls), start, last (of the last call), is_first (after an embedding) }, ... } of each thread.
local function runs_of(calls)
  local threads, of_track = {}, {}
  for _, call in ipairs(calls) do
    local runs = sequences.entry(threads, of_track, call.track, function() return {} end)
    local run = runs[#runs]
    if not call.phase then
      runs.embedding, runs.has_embeddings = call.start, true
    else
      if not run or run.phase ~= call.phase or runs.embedding then
        run = { phase = call.phase, from = call.from, track = call.track, count = 0,
          start = runs.embedding or call.start, is_first = runs.embedding ~= nil }
        runs[#runs + 1] = run
      end
      run.count, run.last, runs.embedding = run.count + 1, call.start, nil
    end
  end
  return threads
end

-- The calls of one phase in a layer of a mixed step, at most. Without embeddings, they may also be a whole
-- step of a very small model.
local MOST_IN_LAYER, MOST_WITHOUT_EMBEDDINGS = 4, 2

-- Joins three or more short runs of a step, which alternate, to one that is mixed.
local function join_alternating(runs)
  local most = runs.has_embeddings and MOST_IN_LAYER or MOST_WITHOUT_EMBEDDINGS
  local out, i = {}, 1
  while i <= #runs do
    local stop = i
    while runs[i].count <= most and runs[stop + 1] and runs[stop + 1].count <= most
      and not runs[stop + 1].is_first do stop = stop + 1 end
    if stop - i >= 2 then
      local run, is_clear = runs[i], true
      for k = i, stop do
        is_clear = is_clear and runs[k].phase ~= UNCLEAR
        if k > i then run.count, run.last = run.count + runs[k].count, runs[k].last end
      end
      run.phase = is_clear and "mixed" or UNCLEAR
      out[#out + 1] = run
    else
      table.move(runs, i, stop, #out + 1, out)
    end
    i = stop + 1
  end
  return out
end

-- Whether calls are of a decoder: they have pages of a cache, or kernels with a phase, or more keys by one
-- than an earlier decode; or all calls of a step decode.
local function is_decoder(calls, threads)
  local keys = {}
  for _, call in ipairs(calls) do
    if call.is_paged or call.phase and not call.arguments then return true end
    if call.keys and keys[call.keys - 1] then return true end
    if call.keys then keys[call.keys] = true end
  end
  for _, runs in ipairs(threads) do
    for i, run in ipairs(runs) do
      local is_whole = run.is_first and (not runs[i + 1] or runs[i + 1].is_first)
      if is_whole and run.phase == "decode" and run.count > 1 then return true end
    end
  end
  return false
end

-- Whether runs (by start) of two threads have different phases at the same time.
local function overlap(runs)
  local of_track = {}
  for _, run in ipairs(runs) do
    for track, other in pairs(of_track) do
      if track ~= run.track and other.phase ~= run.phase and other.last > run.start then return true end
    end
    of_track[run.track] = run
  end
  return false
end

-- The parts within the windows { start, stop }, which are in order: one that is in several is several parts,
-- and the first of them has its count and steps.
local function within(parts, windows)
  if #windows == 0 then return parts end
  local out, at = {}, 1
  for _, part in ipairs(parts) do
    local count, steps = part.count, part.steps
    while windows[at] and windows[at][2] <= part.start do at = at + 1 end
    local i = at
    while windows[i] and windows[i][1] < part.stop do
      out[#out + 1] = { phase = part.phase, from = part.from, count = count, steps = steps,
        start = math.max(part.start, windows[i][1]), stop = math.min(part.stop, windows[i][2]) }
      count, steps, i = 0, steps and 0, i + 1
    end
  end
  return out
end

-- The number of steps of these runs: each begins with an embedding, or one did not, and the number is unknown
-- (nil). With several threads it is unknown, too: they may share steps.
local function steps_of(runs, is_alone)
  if not is_alone then return nil end
  return sequences.all(runs, function(run) return run.is_first end) and #runs or nil
end

-- The parts of a trace's time in order, { phase, from, count (of calls), start, stop, steps (nil: unknown) }:
-- each from the first call of its phase, or the last embedding before it, to the next part or the end of a
-- selected step. {}: nothing is inferred. Also returns the calls, for `of_marks`, and, if threads do not
-- permit to infer parts, why.
function inferred_phases.of(rank)
  local wanted = names_of(rank)
  local calls = wanted and calls_of(rank, wanted) or {}
  local threads = runs_of(calls)
  if not is_decoder(calls, threads) then return {}, {} end
  local runs = ordering.falling(sequences.join(threads, join_alternating), function(run)
    return -run.start
  end)
  if overlap(runs) then return {}, {}, "threads of the host prefill and decode at the same time" end
  local is_alone = #sequences.distinct(sequences.field(runs, "track")) == 1
  local parts = {}
  for _, run in ipairs(runs) do
    local last = parts[#parts]
    if last and last.phase == run.phase then
      last.count = last.count + run.count
      last.runs[#last.runs + 1] = run
    else
      if last then last.stop = run.start end
      parts[#parts + 1] = { phase = run.phase, from = run.from, count = run.count, runs = { run },
        start = last and run.start or -math.huge, stop = math.huge }
    end
  end
  for _, part in ipairs(parts) do part.steps = steps_of(part.runs, is_alone) end
  parts = sequences.filter(parts, function(part) return part.phase ~= UNCLEAR end)
  return within(parts, rank.trace:kept()), calls
end

-- Of each step, { start, stop } by start, { phase, from }: the phase of the calls in its time, and what it is
-- inferred from; {}: there are none, or one is unclear.
function inferred_phases.of_marks(calls, marks)
  local at = 1
  return sequences.map(marks, function(mark)
    local found = {}
    while calls[at] and calls[at].start < mark.stop do
      local call = calls[at]
      if call.phase and call.start >= mark.start then
        local is_same = not found.phase or found.phase == call.phase
        local is_unclear = call.phase == UNCLEAR or found.phase == UNCLEAR
        found.phase = is_unclear and UNCLEAR or is_same and call.phase or "mixed"
        found.from = found.from or call.from
      end
      at = at + 1
    end
    return found.phase ~= UNCLEAR and found or {}
  end)
end

return inferred_phases
