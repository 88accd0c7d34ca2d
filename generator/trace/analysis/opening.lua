-- Opens traces for analyses: whole, or only the selected steps or annotations.
--
-- A selection has steps (a set of numbers, or nil) and annotations (a list of names, where * stands for any
-- characters, or nil). Steps are the marks ProfilerStep#N of torch's profiler; with annotations, their
-- occurrences, counted from 0. The work of a step is the host's events that start in it, on any thread, and
-- the GPU events that these launch.
--
-- Captured traces give the GPU events of replayed CUDA graphs their ops and calls: trace/analysis/captures.h.
local fail = require "base.fail"
local file = require "core.file"
local ordering = require "base.ordering"
local quantities = require "base.quantities"
local sequences = require "base.sequences"

local opening = {}

local MOST_NAMED = 12 -- names in a message

-- Of all traces that this process and its children open.
local selection -- nil: whole traces
local captured  -- { paths, identity = text, path, frames, traces (nil: not opened yet) }; nil: none

-- Selects the parts of all traces that are opened from now on; nil: whole traces.
function opening.select(wanted) selection = wanted end

-- The paths of the traces in a folder, or of a single one. Raises if there are none.
local function traces_in(path)
  local kind = file.status(path)
  if kind ~= "folder" then return { path } end
  local names = sequences.filter(fail.unless(file.list(path)), function(name)
    return name:find("%.json$") or name:find("%.json%.gz$") or name:find("%.json%.zst$")
  end)
  if #names == 0 then
    fail.input("--capture: %s has no trace (.json, .json.gz, .json.zst); subfolders are not searched", path)
  end
  return sequences.map(names, function(name) return path .. "/" .. name end)
end

local function of_capture(value, message)
  if value then return value end
  fail.input("--capture: %s; give a folder with traces alone, or a single trace", message)
end

-- Opens the captured traces, if there are some that are not open. Raises if one cannot be read.
function opening.load()
  if not captured or captured.traces then return end
  captured.traces = sequences.map(captured.paths, function(path)
    return of_capture(require("core.trace").open(path, { launched = true, frames = captured.frames }))
  end)
end

-- Selects the captured traces in the folder `path`, or nil: none, for all traces that are opened from now on.
-- `frames`: with functions of Python. They are opened here, or, if `later` is true, by opening.load. Raises
-- if one cannot be read.
function opening.capture(path, frames, later)
  captured = nil
  if not path then return end
  local paths = traces_in(path)
  local hashes = sequences.map(paths, function(one)
    return of_capture(require("core.system").hash_file(one))
  end)
  captured = { paths = paths, identity = table.concat(hashes, " "), path = path, frames = frames }
  if not later then opening.load() end
end

-- The selection and the captured traces as a text, equal for equal ones; "": neither.
function opening.selected()
  local capture = captured and "captured " .. captured.identity or ""
  if not selection then return capture end
  local annotations = ordering.sorted_keys(sequences.set(selection.annotations or {}))
  return ("%ssteps %s of %s"):format(capture, table.concat(ordering.sorted_keys(selection.steps or {}), " "),
    table.concat(annotations, "\0"))
end

local function selection_in_words()
  local steps = table.concat(ordering.sorted_keys(selection.steps or {}), ", ")
  if not selection.annotations then return "steps " .. steps end
  local names = "the annotations " .. table.concat(selection.annotations, ", ")
  return steps ~= "" and ("occurrences %s of %s"):format(steps, names) or names
end

-- The selection and the captured traces for a reader, as the end of "2 traces"; "": neither.
function opening.words()
  return (selection and ", of which only " .. selection_in_words() or "")
    .. (captured and ", with the captured traces in " .. captured.path or "")
end

-- The number of a mark ProfilerStep#N; nil: another mark.
function opening.step_of(name) return math.tointeger(tonumber(name:match("^ProfilerStep#(%d+)$"))) end

-- "prefill", "decode" or "mixed", of the mark of a step of inference: a name of vLLM,
-- execute_context_C(..)_generation_G(..), one of SGLang with EXTEND or DECODE, or one with prefill or decode.
-- nil: another mark.
function opening.phase_of(name)
  local context, generation = name:match("^execute_context_(%d+).*_generation_(%d+)")
  local prefills, decodes = tonumber(context or 0) > 0, tonumber(generation or 0) > 0
  if not context then
    local words = name:lower()
    prefills = words:find("prefill", 1, true) or words:find("%f[%a]extend%f[%A]")
    decodes = words:find("decode%f[%A]")
  end
  if prefills and decodes then return "mixed" end
  return prefills and "prefill" or decodes and "decode" or nil
end

-- Those of the marks (of t:marks()) that begin after the last one has ended, by start: without the marks in
-- others.
function opening.outermost(marks)
  local sorted = ordering.sort(table.move(marks, 1, #marks, 1, {}), ordering.by("start", "-stop"))
  local out = {}
  for _, mark in ipairs(sorted) do
    if #out == 0 or mark.start >= out[#out].stop then out[#out + 1] = mark end
  end
  return out
end

-- ---- selecting --------------------------------------------------------------------------------

-- A pattern of Lua for a name in which * stands for any characters.
local function pattern_of(name)
  return "^" .. name:gsub("[%^%$%(%)%%%.%[%]%+%-%?]", "%%%0"):gsub("%*", ".*") .. "$"
end

-- Names in a message: distinct, in order of first appearance.
local function named(names)
  local list = sequences.distinct(names)
  local shown = table.concat(list, ", ", 1, math.min(#list, MOST_NAMED))
  return #list > MOST_NAMED and ("%s and %d more"):format(shown, #list - MOST_NAMED) or shown
end

local function steps_in(marks)
  return sequences.map(marks, function(mark) return opening.step_of(mark.name) end)
end

-- The end of a message: the steps and annotations of a trace.
local function there_are(marks)
  local steps = steps_in(marks)
  local others = sequences.map(marks, function(mark)
    return not opening.step_of(mark.name) and mark.name or nil
  end)
  if #steps + #others == 0 then return "it has neither steps nor annotations" end
  local parts = {}
  if #steps > 0 then parts[1] = "steps: " .. named(steps) end
  if #others > 0 then parts[#parts + 1] = "annotations: " .. named(others) end
  return table.concat(parts, "; ")
end

-- The marks with the selected names, each in order of time: { { mark, number }... }.
local function numbered(marks, annotations)
  if not annotations then
    return sequences.map(marks, function(mark)
      local number = opening.step_of(mark.name)
      return number and { mark = mark, number = number }
    end)
  end
  local patterns = sequences.map(annotations, pattern_of)
  local found = opening.outermost(sequences.filter(marks, function(mark)
    return sequences.any(patterns, function(pattern) return mark.name:find(pattern) end)
  end))
  return sequences.map(found, function(mark, i) return { mark = mark, number = i - 1 } end)
end

-- The end of a message: those of the selected steps that are among these numbers; "": none.
local function there_among(numbers)
  local wanted = ordering.sorted_keys(selection.steps)
  local there = sequences.filter(wanted, function(step) return numbers[step] end)
  if #there == 0 then return "" end
  return ("; --steps %s selects those that it has"):format((quantities.ranges(there):gsub(", ", ",")))
end

-- The selected marks of a trace, or nil, message.
local function selected(marks, path)
  for _, name in ipairs(selection.annotations or {}) do
    local pattern = pattern_of(name)
    if not sequences.any(marks, function(mark) return mark.name:find(pattern) end) then
      return nil, ("%s: no annotation %s; %s"):format(path, name, there_are(marks))
    end
  end
  local all = numbered(marks, selection.annotations)
  if not selection.steps then return sequences.field(all, "mark") end
  local numbers = sequences.set(sequences.field(all, "number"))
  for _, step in ipairs(ordering.sorted_keys(selection.steps)) do
    if not numbers[step] then
      local has = selection.annotations and ("%d with these names, counted from 0"):format(#all)
        or there_are(marks)
      return nil, ("%s: no step %d; %s%s"):format(path, step, has, there_among(numbers))
    end
  end
  return sequences.map(all, function(one) return selection.steps[one.number] and one.mark or nil end)
end

-- Removes what is not selected. Returns true, or nil, message.
local function select_in(trace, path)
  local marks, message = selected(trace:marks(), path)
  if not marks then return nil, message end
  trace:keep(sequences.map(opening.outermost(marks), function(mark) return { mark.start, mark.stop } end))
  local info = trace:info()
  if info.host_events + info.gpu_events > 0 then return true end
  return nil, ("%s: no op and no GPU event begins in the selected steps"):format(path)
end

-- ---- opening ----------------------------------------------------------------------------------

-- core.trace.open for users' files: rejects a trace without any op, call of the runtime or GPU event, such as
-- one of JAX, because all its sheets would be empty. Returns the trace without what is not selected, or nil,
-- message.
function opening.open(path, options)
  if path:find("%.digest$") then
    return nil, path .. ": is a digest, with the data for results over ranks; give the trace"
  end
  local trace, message = require("core.trace").open(path, options)
  if not trace then return nil, message end
  local info = trace:info()
  if info.host_events + info.gpu_events == 0 then
    trace:close()
    return nil, ("%s: none of its %d events has a category of torch's profiler (cpu_op, cuda_runtime, "
      .. "kernel, ...); a trace of torch.profiler is required, not one of JAX or the like"):format(path,
      info.events)
  end
  opening.load()
  if captured then trace:attribute(captured.traces) end
  if not selection then return trace end
  local done
  done, message = select_in(trace, path)
  if done then return trace end
  trace:close()
  return nil, message
end

return opening
