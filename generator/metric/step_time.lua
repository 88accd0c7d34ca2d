-- step_time: the time of a step, in ms: the mean over the marks that the program set on the host.
local per_rank = require "profile.per_rank"
local statistics = require "base.statistics"

return per_rank.metric {
  value = function(rank)
    local times_ms = {}
    for i, start in ipairs(rank.steps.start) do times_ms[i] = (rank.steps.stop[i] - start) / 1e6 end
    if #times_ms == 0 then
      return nil, "marks of steps: no ProfilerStep#N (the profiler's step()) and no NVTX range \"step N\""
    end
    local summary = statistics.summarise(times_ms)
    return summary.mean, { steps = summary.count, median_ms = summary.median, min_ms = summary.min,
      max_ms = summary.max, standard_deviation_ms = summary.standard_deviation }
  end,
}
