-- The kernel summary of an `nsys export --type sqlite` file, equal to that of `nsys stats`: one kernel per
-- name, over all devices and streams. kernel_summary.lua describes the result.
--
-- Durations are counted by their length: a clock with steps of some nanoseconds gives only thousands of
-- lengths for millions of calls, and all results are computed exactly from these counts.
local fail = require "base.fail"
local nsys = require "profile.nsys"
local optional = require "base.optional"
local ordering = require "base.ordering"
local sequences = require "base.sequences"

local kernel_summary_sqlite = {}

local kernel_table = "CUPTI_ACTIVITY_KIND_KERNEL"

-- The columns of a kernel's name, the best first; the version of nsys determines which exist.
local name_columns = { "demangledName", "shortName", "mangledName" }

-- The column of a kernel's name.
local function name_column(source)
  local columns = nsys.columns_of(source, kernel_table)
  if not columns then
    fail.input("%s: has no table %s: no CUDA kernel was traced; give a profile with --trace=cuda that "
      .. "launches kernels", source.path, kernel_table)
  end
  local found = name_columns[1]
  for i = #name_columns, 1, -1 do
    if columns[name_columns[i]] then found = name_columns[i] end
  end
  for _, name in ipairs { "start", "end", found } do
    if not columns[name] then
      fail.input("%s: its table %s has no column %s", source.path, kernel_table, name)
    end
  end
  local strings = nsys.columns_of(source, "StringIds")
  if not (strings and strings.id and strings.value) then
    fail.input("%s: has no table StringIds with the names of kernels", source.path)
  end
  return found
end

-- Adds `count` calls of this duration.
local function add(calls, duration, count) calls[duration] = (calls[duration] or 0) + count end

-- { [id of the name] = { [duration in ns] = calls } }
local function count_durations(source)
  local by_id, broken = {}, 0
  local sql = ('SELECT "%s", "end" - start FROM %s'):format(name_column(source), kernel_table)
  nsys.query(source, sql, function(id, duration)
    if not id or math.type(duration) ~= "integer" or duration < 0 then
      broken = broken + 1
      return
    end
    add(sequences.at(by_id, id), duration, 1)
  end)
  if broken > 0 then
    fail.input("%s: %d of its kernels have no name, no end, or an end before the start", source.path, broken)
  end
  if not next(by_id) then
    fail.input("%s: its table %s is empty: no CUDA kernel was traced", source.path, kernel_table)
  end
  return by_id
end

-- The text of a name; some exports have it in place of its id.
local function name_of(source, id)
  if type(id) == "string" then return id end
  local name
  nsys.query(source, "SELECT value FROM StringIds WHERE id = ?", function(value) name = value end, id)
  if name then return name end
  fail.input("%s: its table StringIds has no name %s, which a kernel refers to", source.path, id)
end

-- Adds up the durations of ids with the same text.
local function by_text(source, by_id)
  local by_name = {}
  for id, calls in pairs(by_id) do
    local of_name = sequences.at(by_name, name_of(source, id))
    for duration, count in pairs(calls) do add(of_name, duration, count) end
  end
  return by_name
end

-- The call at `index` of `instances`, in the order of `durations`.
local function at_index(durations, calls, index)
  for _, duration in ipairs(durations) do
    index = index - calls[duration]
    if index <= 0 then return duration end
  end
end

-- sqrt(sum of (d - mean)^2 / (n - 1)), 0 for one call; always summed in the same order, for equal results.
local function sample_std(durations, calls, mean, instances)
  if instances == 1 then return 0 end
  local squares = 0.0
  for _, duration in ipairs(durations) do squares = squares + calls[duration] * (duration - mean) ^ 2 end
  return math.sqrt(squares / (instances - 1))
end

local function summarize(name, calls)
  local durations, total_ns, instances = {}, 0, 0
  for duration, count in pairs(calls) do
    durations[#durations + 1] = duration
    total_ns, instances = total_ns + duration * count, instances + count
  end
  table.sort(durations)
  local mean = total_ns / instances
  local low = at_index(durations, calls, (instances + 1) // 2)
  local high = at_index(durations, calls, instances // 2 + 1)
  return { name = name, total_ns = total_ns, instances = instances, avg_ns = mean, med_ns = (low + high) / 2,
    min_ns = durations[1], max_ns = durations[#durations],
    std_ns = sample_std(durations, calls, mean, instances) }
end

-- The kernels in the database at `path`.
function kernel_summary_sqlite.read(path)
  local sqlite = optional "core.sqlite"
  if not sqlite then
    fail.input("%s: gentables was built without SQLite; give the CSV of nsys stats --format csv", path)
  end
  local database, message = sqlite.open(path)
  if not database then fail.input("%s: cannot be read: %s", path, message) end
  local source, kernels = { path = path, database = database }, {}
  for name, calls in pairs(by_text(source, count_durations(source))) do
    kernels[#kernels + 1] = summarize(name, calls)
  end
  database:close()
  table.sort(kernels, ordering.by("-total_ns", "instances", "name")) -- as nsys stats
  return kernels
end

return kernel_summary_sqlite
