-- The sheet gpu_timeline: where the time of the GPU goes, from the first start to the last end. A trace of
-- our own has some steps and not what was between them: times are of those steps, and a row more says so.
local grouping = require "trace.ops.grouping"

local rows = {
  { "computation_time", "computation" }, { "exposed_comm_time", "exposed_communication" },
  { "exposed_memcpy_time", "exposed_copies" }, { "busy_time", "busy" }, { "idle_time", "idle" },
  { "micro_idle_time", "micro_idle", only_with_limit = true },
  { "macro_idle_time", "macro_idle", only_with_limit = true },
  { "total_time", "total" }, { "total_comm_time", "communication" }, { "total_memcpy_time", "copies" },
}

return {
  -- options: include_unlinked, micro_idle (µs, or nil: idle time is not split).
  make = function(rank, options)
    local times = rank.analysis:timeline(options.include_unlinked or false, options.micro_idle or 0)
    local sheet = { name = "gpu_timeline", columns = { "type", "time ms", "percent" }, rows = {} }
    for _, row in ipairs(rows) do
      if options.micro_idle or not row.only_with_limit then
        local time = times[row[2]]
        sheet.rows[#sheet.rows + 1] = { row[1], time / 1e3, grouping.percent(time, times.total) }
      end
    end
    if times.steps > 0 then
      sheet.rows[#sheet.rows + 1] = { "untraced_time (between traced steps; not in total_time)",
        times.untraced / 1e3, grouping.percent(times.untraced, times.total) }
    end
    return sheet, times
  end,
}
