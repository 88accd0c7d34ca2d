-- The sheet gpu_timeline: the GPU's time by use, from the first start to the last end. Traces of gentables
-- workload have only some steps, and of other traces only some may be selected: times are of those steps, and
-- one more row has the rest.
local grouping = require "trace.ops.grouping"

local rows = {
  { "computation_time", "computation" }, { "exposed_comm_time", "exposed_communication" },
  { "exposed_memcpy_time", "exposed_copies" }, { "busy_time", "busy" }, { "idle_time", "idle" },
  { "micro_idle_time", "micro_idle", only_with_limit = true },
  { "macro_idle_time", "macro_idle", only_with_limit = true },
  { "total_time", "total" }, { "total_comm_time", "communication" }, { "total_memcpy_time", "copies" },
}

-- The view of the rank's exposed communication. `rank`: nil if it is unknown.
local function view_of(rank)
  return { name = "exposed_communication", sql = ([[
SELECT %s AS rank, exposed."time ms" AS exposed_ms, exposed.percent AS percent_of_total,
  "all"."time ms" AS communication_ms
FROM gpu_timeline exposed JOIN gpu_timeline "all" ON "all".type = 'total_comm_time'
WHERE exposed.type = 'exposed_comm_time']]):format(rank or "NULL") }
end

local UNTRACED = "untraced_time (between traced steps; not in total_time)"
local UNSELECTED = "unselected_time (between selected steps; not in total_time)"

local function sheet_of(times, splits_idle, info, rank)
  local sheet = { name = "gpu_timeline", columns = { "type", "time ms", "percent" }, rows = {},
    views = { view_of(rank) } }
  for _, row in ipairs(rows) do
    if splits_idle or not row.only_with_limit then
      local time = times[row[2]]
      sheet.rows[#sheet.rows + 1] = { row[1], time / 1e3, grouping.percent(time, times.total) }
    end
  end
  if times.steps > 0 then
    sheet.rows[#sheet.rows + 1] = { info.is_cut and UNSELECTED or UNTRACED, times.untraced / 1e3,
      grouping.percent(times.untraced, times.total) }
  end
  return sheet
end

local function add_gaps(notes, analysis, times)
  local counts = analysis:counts()
  if counts.overlapping > 0 then
    notes[#notes + 1] = { "overlapping GPU", counts.overlapping, "event " .. counts.first_overlapping,
      "GPU events begin before the last one of their stream ends; sums of durations count such time twice" }
  end
  if counts.gpu_events == 0 then
    notes[#notes + 1] = { "no GPU events", 0, nil,
      "nothing ran on a GPU: times are zero, and the sheets of ops and kernels are empty" }
  elseif times.events == 0 then
    notes[#notes + 1] = { "no linked GPU events", 0, nil,
      "no GPU event has a launch: the sheets of ops are empty, and gpu_timeline without --include-unlinked" }
  end
end

return {
  -- options: include_unlinked, micro_idle (µs, or nil: idle time is not split), rank (nil: that in
  -- the trace).
  make = function(rank, options, notes)
    local times = rank:times(options)
    add_gaps(notes, rank.analysis, times)
    local info = rank.trace:info()
    return { sheet_of(times, options.micro_idle ~= nil, info, options.rank or info.rank) }
  end,
}
