-- The sheets steps and phases: the GPU's time by use, as in gpu_timeline, of each step, and of all steps of
-- prefill and of decode. A step is a mark ProfilerStep#N of torch's profiler, or, without these, an
-- annotation that is in no other. The phase comes from the name of an annotation: trace/analysis/opening.lua.
-- If no annotation has one, it is inferred (inferred_phases.lua), and a column has what from.
local grouping = require "trace.ops.grouping"
local inferred_phases = require "trace.sheets.inferred_phases"
local opening = require "trace.analysis.opening"
local ordering = require "base.ordering"
local sequences = require "base.sequences"

local times = {
  { "computation_time ms", "computation" }, { "exposed_comm_time ms", "exposed_communication" },
  { "exposed_memcpy_time ms", "exposed_copies" }, { "busy_time ms", "busy" }, { "idle_time ms", "idle" },
  { "total_time ms", "total" }, { "total_comm_time ms", "communication" },
}
local columns_of_times = sequences.field(times, 1)

local REST, FROM = "outside of steps", "inferred from"

-- The last columns of `phases`: the share of a phase's total time in that of the whole time line, and the
-- total time of one of its steps.
local shares = { "percent", "time per step ms" }

-- The GPU's times within each mark, and then of the rest.
local function timelines(rank, marks, options)
  local windows = sequences.map(marks, function(mark) return { mark.start, mark.stop } end)
  return rank.analysis:timelines(options.include_unlinked or false, windows)
end

local function cells_of(one)
  return sequences.map(times, function(column) return one[column[2]] / 1e3 end)
end

-- The steps among the marks of a trace.
local function steps_of(marks)
  local steps = sequences.filter(marks, function(mark) return opening.step_of(mark.name) end)
  return opening.outermost(#steps > 0 and steps or marks)
end

-- calls: of inferred_phases.of; nil: annotations have phases.
local function steps_sheet(rank, marks, calls, options)
  local is_inferred = calls and #calls > 0
  local sheet = { name = "steps", rows = {}, columns = sequences.join { { "step", "phase", "start (µs)",
    "host time (µs)", "GPU events" }, columns_of_times, { is_inferred and FROM or nil } } }
  local steps = steps_of(marks)
  local all = timelines(rank, steps, options)
  local inferred = is_inferred and inferred_phases.of_marks(calls, steps)
  for i, mark in ipairs(steps) do
    local phase = opening.phase_of(mark.name)
    if inferred then phase = inferred[i].phase end
    sheet.rows[i] = grouping.row():add(mark.name, phase, mark.start, mark.stop - mark.start, all[i].events)
      :add(table.unpack(cells_of(all[i])))
    if inferred then sheet.rows[i]:add(inferred[i].from) end
  end
  local rest = all[#all]
  if rest.events > 0 then
    sheet.rows[#sheet.rows + 1] = grouping.row():add(REST, nil, nil, nil, rest.events)
      :add(table.unpack(cells_of(rest)))
  end
  return sheet
end

-- Sums over the parts of each phase, { phase, start, stop, count, steps (nil: unknown), from }, and the
-- events outside of them: by phase, in order, { phase, count, steps, host (µs), events, total (µs), cells,
-- shares (empty outside of them), from }.
local function sums_of(rank, parts, options)
  local all, of_phase, whole = timelines(rank, parts, options), {}, rank:times(options).total
  local function add(phase, one, part)
    local sum = of_phase[phase]
      or { phase = phase, count = 0, steps = 0, host = 0.0, events = 0, total = 0.0, cells = {},
        shares = {} }
    of_phase[phase], sum.events, sum.total = sum, sum.events + one.events, sum.total + one.total
    if part then
      sum.count, sum.host, sum.from = sum.count + part.count, sum.host + (part.stop - part.start), part.from
      sum.steps = sum.steps and part.steps and sum.steps + part.steps
    end
    for i, cell in ipairs(cells_of(one)) do sum.cells[i] = (sum.cells[i] or 0.0) + cell end
  end
  for i, part in ipairs(parts) do add(part.phase, all[i], part) end
  for _, sum in pairs(of_phase) do
    sum.shares = { grouping.percent(sum.total, whole), sum.steps and sum.total / sum.steps / 1e3 or nil }
  end
  if all[#all].events > 0 then add(REST, all[#all]) end
  return sequences.map(ordering.sorted_keys(of_phase), function(phase) return of_phase[phase] end)
end

-- The sheet of the marks with a phase; nil: none has one.
local function phases_sheet(rank, marks, options)
  local parts = sequences.map(opening.outermost(sequences.filter(marks, function(mark)
    return opening.phase_of(mark.name)
  end)), function(mark)
    return { phase = opening.phase_of(mark.name), start = mark.start, stop = mark.stop, count = 1,
      steps = 1 }
  end)
  if #parts == 0 then return nil end
  return { name = "phases", rows = sequences.map(sums_of(rank, parts, options), function(sum)
    return grouping.row():add(sum.phase, sum.count, sum.host / 1e3, sum.events):add(table.unpack(sum.cells))
      :add(table.unpack(sum.shares, 1, #shares))
  end), columns = sequences.join { { "phase", "steps", "host time ms", "GPU events" }, columns_of_times,
    shares } }
end

-- The same with inferred phases; nil: there are none.
local function inferred_sheet(rank, parts, options)
  if #parts == 0 then return nil end
  return { name = "phases", rows = sequences.map(sums_of(rank, parts, options), function(sum)
    return grouping.row():add(sum.phase, sum.count, sum.events):add(table.unpack(sum.cells)):add(sum.from,
      sum.from and sum.steps):add(table.unpack(sum.shares, 1, #shares))
  end), columns = sequences.join { { "phase", "calls of attention", "GPU events" }, columns_of_times,
    { FROM, "steps" }, shares } }
end

return {
  -- options: include_unlinked.
  make = function(rank, options, notes)
    local marks, calls = rank.trace:marks(), nil
    local phases = phases_sheet(rank, marks, options)
    if not phases then
      local parts, why
      parts, calls, why = inferred_phases.of(rank)
      if why then notes[#notes + 1] = { "without phases", 0, nil, why } end
      phases = inferred_sheet(rank, parts, options)
    end
    local steps = #marks > 0 and steps_sheet(rank, marks, calls, options) or nil
    return steps and { steps, phases } or { phases }
  end,
}
