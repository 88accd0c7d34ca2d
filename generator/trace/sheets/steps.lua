-- The sheets steps and phases: the GPU's time by use, as in gpu_timeline, of each step, and of all steps of
-- prefill and of decode. A step is a mark ProfilerStep#N of torch's profiler, or, without these, an
-- annotation that is in no other. The phase comes from the name of an annotation: trace/analysis/opening.lua.
local grouping = require "trace.ops.grouping"
local opening = require "trace.analysis.opening"
local ordering = require "base.ordering"
local sequences = require "base.sequences"

local times = {
  { "computation_time ms", "computation" }, { "exposed_comm_time ms", "exposed_communication" },
  { "exposed_memcpy_time ms", "exposed_copies" }, { "busy_time ms", "busy" }, { "idle_time ms", "idle" },
  { "total_time ms", "total" }, { "total_comm_time ms", "communication" },
}
local columns_of_times = sequences.field(times, 1)

local REST = "outside of steps"

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

local function steps_sheet(rank, marks, options)
  local sheet = { name = "steps", rows = {},
    columns = sequences.join { { "step", "phase", "start (µs)", "host time (µs)", "GPU events" },
      columns_of_times } }
  local steps = steps_of(marks)
  local all = timelines(rank, steps, options)
  for i, mark in ipairs(steps) do
    sheet.rows[i] = grouping.row():add(mark.name, opening.phase_of(mark.name), mark.start,
      mark.stop - mark.start, all[i].events):add(table.unpack(cells_of(all[i])))
  end
  local rest = all[#all]
  if rest.events > 0 then
    sheet.rows[#sheet.rows + 1] = grouping.row():add(REST, nil, nil, nil, rest.events)
      :add(table.unpack(cells_of(rest)))
  end
  return sheet
end

-- Sums of the steps of each phase, and the steps outside of them; nil: no mark has a phase.
local function phases_sheet(rank, marks, options)
  local steps = opening.outermost(sequences.filter(marks, function(mark)
    return opening.phase_of(mark.name)
  end))
  if #steps == 0 then return nil end
  local all, of_phase = timelines(rank, steps, options), {}
  local function add(phase, one, host_us)
    local sum = of_phase[phase] or { steps = 0, host = 0.0, events = 0, cells = {} }
    of_phase[phase], sum.events = sum, sum.events + one.events
    if host_us then sum.steps, sum.host = sum.steps + 1, sum.host + host_us end
    for i, cell in ipairs(cells_of(one)) do sum.cells[i] = (sum.cells[i] or 0.0) + cell end
  end
  for i, mark in ipairs(steps) do add(opening.phase_of(mark.name), all[i], mark.stop - mark.start) end
  if all[#all].events > 0 then add(REST, all[#all]) end
  local sheet = { name = "phases", rows = {},
    columns = sequences.join { { "phase", "steps", "host time ms", "GPU events" }, columns_of_times } }
  for _, phase in ipairs(ordering.sorted_keys(of_phase)) do
    local sum = of_phase[phase]
    sheet.rows[#sheet.rows + 1] = grouping.row():add(phase, sum.steps, sum.host / 1e3, sum.events)
      :add(table.unpack(sum.cells))
  end
  return sheet
end

return {
  -- options: include_unlinked.
  make = function(rank, options)
    local marks = rank.trace:marks()
    if #marks == 0 then return {} end
    return { steps_sheet(rank, marks, options), phases_sheet(rank, marks, options) }
  end,
}
