-- One rank's trace with the data that its sheets share: arguments and tracks, the performance models of its
-- ops, selections, which are made at most once.
--
--   rank.open(path[, options]) -> rank | nil, message        options as of core.trace.open
--   rank.of(trace) -> the rank of an open trace
local families = require "trace.ops.families"
local gpus = require "lists.gpus"
local opening = require "trace.analysis.opening"

local rank = {}
rank.__index = rank

local known = setmetatable({}, { __mode = "k" })

function rank.of(trace)
  if not known[trace] then
    known[trace] = setmetatable({ trace = trace, analysis = trace:analysis(), track_of = {},
      selections = {}, times_of = {} }, rank)
  end
  return known[trace]
end

function rank.open(path, options)
  local trace, message = opening.open(path, options)
  if not trace then return nil, message end
  local one = rank.of(trace)
  one.path = path
  return one
end

-- The GPU of the trace, with its peaks (lists/gpus.lua), or nil.
function rank:gpu()
  if self.known_gpu == nil then self.known_gpu = gpus.of(self.trace:info()) or false end
  return self.known_gpu or nil
end

-- The arguments with this number (-1: none) as the sheets write them: dims, types, strides, concrete; nil if
-- the trace lacks them. `as_lists`: lists have brackets.
function rank:arguments(number, as_lists)
  if number < 0 then return nil, nil, nil, nil end
  return self.analysis:arguments(number, as_lists)
end

-- { process_name, process_label, thread_name, key } of a track. Tracks with the same key are one in the
-- sheets, because a trace may name none of its threads.
function rank:track(number)
  local found = self.track_of[number]
  if not found then
    found = { self.analysis:track(number) }
    found.key = table.concat(found, "\0")
    self.track_of[number] = found
  end
  return found
end

-- The input of core.trace for each name with a performance model: { sheet, has_backward, outermost }; see
-- op_model in trace/analysis/selection.h.
local function perf_models_of(analysis)
  local sheet_numbers, count = {}, 0
  local perf_models = {}
  local numbers, names = analysis:op_names()
  for i, number in ipairs(numbers) do
    local op = families.op(names[i])
    if op then
      local family = families.family(op)
      local sheet = family.sheet or family.name
      if not sheet_numbers[sheet] then
        count = count + 1
        sheet_numbers[sheet] = count
      end
      perf_models[number] = { sheet = sheet_numbers[sheet], has_backward = op.has_backward,
        outermost = family.outermost }
    end
  end
  return perf_models
end

-- A selection: "launchers", "modelled", "backward" or "unified"; and its combos.
function rank:select(kind)
  local found = self.selections[kind]
  if not found then
    self.perf_models = self.perf_models or perf_models_of(self.analysis)
    local selection = self.analysis:select(kind, self.perf_models)
    found = { selection = selection, combos = selection:combos() }
    self.selections[kind] = found
  end
  return found.selection, found.combos
end

-- The GPU's times by use, in µs: the result of analysis:timeline (trace/analysis/analysis_lua.cpp). options:
-- include_unlinked, micro_idle (µs).
function rank:times(options)
  local unlinked, micro_idle = options.include_unlinked or false, options.micro_idle or 0
  local key = ("%s %s"):format(unlinked, micro_idle)
  self.times_of[key] = self.times_of[key] or self.analysis:timeline(unlinked, micro_idle)
  return self.times_of[key]
end

-- The value if it is a list, else nil.
local function list(value) return type(value) == "table" and value or nil end

-- The category of a combo's op.
function rank:category(combos, combo)
  local name, number, dims = combos.name[combo], combos.arguments[combo], nil
  if families.depends_on_shapes(name) and number >= 0 then
    dims = list((self.analysis:argument_values(number)))
  end
  return families.category(name, combos.first_kernel[combo], dims)
end

-- The input of perf_model from a combo.
function rank:call_of(selection, combos, combo)
  return self:call_with(combos.model_arguments[combo], function() return selection:kernels(combo) end)
end

-- The input of perf_model from the arguments with this number (-1: none); kernels() returns the names of the
-- kernels.
function rank:call_with(number, kernels)
  local dims, types, strides, concrete
  if number >= 0 then dims, types, strides, concrete = self.analysis:argument_values(number) end
  return { dims = list(dims), types = list(types), strides = list(strides), concrete = list(concrete),
    kernels = kernels }
end

return rank
