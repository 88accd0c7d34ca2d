-- The frame of metrics with one number per rank.
--
--   per_rank.metric { value = function(rank, args) -> number, details | nil, what_is_missing,
--                     combine = function(values, ranks) -> number, details,     default: the mean
--                     combined = "active_ms",              the name of the ranks' values
--                     at_least = 2,                                             ranks; default 1
--                     check = function(args) }                                  raises on wrong options
--
-- Plain output: the number. --json: the number, its statistics over the ranks, and each rank with its
-- details.
local activity = require "profile.activity"
local fail = require "base.fail"
local json = require "codec.json"
local statistics = require "base.statistics"

local per_rank = {}

local function details_into(out, details)
  for key, value in pairs(details or {}) do out[key] = value end
  return out
end

local function values_of(metric, ranks, args, row)
  local values, shown = {}, {}
  for i, rank in ipairs(ranks) do
    local value, details = metric.value(rank, args)
    if not value then fail.input("%s: %s needs %s", rank.label, row.name, details) end
    values[i] = value + 0.0
    shown[i] = details_into({ file = rank.file, rank = rank.number, device = rank.device,
      process = rank.process, [metric.combined or "value"] = values[i] }, details)
  end
  return values, shown
end

-- The number, and the statistics of its values.
local function result_of(metric, values, ranks)
  local summary = statistics.summarise(values)
  if not metric.combine then
    summary.value = summary.mean
    return summary
  end
  local value, details = metric.combine(values, ranks)
  return details_into({ value = value, count = #ranks, [metric.combined] = summary }, details)
end

local function run(metric, args, row)
  if metric.check then metric.check(args) end
  local ranks = activity.load(args.trace)
  if #ranks < (metric.at_least or 1) then
    fail.input("%s: %s compares ranks; give --trace again, once for each rank", ranks[1].file,
      row.name)
  end
  local values, shown = values_of(metric, ranks, args, row)
  local result = result_of(metric, values, ranks)
  if not args.json then
    io.stdout:write(json.encode(result.value), "\n")
    return
  end
  result.metric, result.unit, result.files, result.ranks = row.name, row.unit, activity.files(ranks), shown
  io.stdout:write(json.encode(result), "\n")
end

function per_rank.metric(metric)
  return { value = metric.value, combine = metric.combine,
    run = function(args, row) return run(metric, args, row) end }
end

return per_rank
