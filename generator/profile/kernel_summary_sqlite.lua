-- The kernel summary of an `nsys export --type sqlite` file, equal to that of `nsys stats`: one kernel per
-- name, over all devices and streams. kernel_summary.lua describes the result.
--
-- Durations are counted by their length: a clock with steps of some nanoseconds gives only thousands of
-- lengths for millions of calls, and all results are computed exactly from these counts.
local optional = require "base.optional"
local ordering = require "base.ordering"
local kernel_summary_sqlite = {}

local kernel_table = "CUPTI_ACTIVITY_KIND_KERNEL"

-- The columns of a kernel's name, the best first; the version of nsys determines which exist.
local name_columns = { "demangledName", "shortName", "mangledName" }

-- Columns of a table by name; empty if the table is missing.
local function columns_of(database, name)
  local columns = {}
  local done, message = database:query(("PRAGMA table_info(%s)"):format(name), function(_, column)
    columns[column] = true
  end)
  if not done then return nil, message end
  return columns
end

-- The columns that may contain a kernel's name, or nil, message.
local function check_schema(database)
  local columns, message = columns_of(database, kernel_table)
  if not columns then return nil, message end
  if not next(columns) then
    return nil, "has no table " .. kernel_table .. ": no CUDA kernel was traced; "
      .. "give a profile with --trace=cuda that launches kernels"
  end
  local names = {}
  for _, name in ipairs(name_columns) do
    if columns[name] then names[#names + 1] = name end
  end
  for _, name in ipairs { "start", "end", names[1] or name_columns[1] } do
    if not columns[name] then return nil, ("its table %s has no column %s"):format(kernel_table, name) end
  end
  local strings
  strings, message = columns_of(database, "StringIds")
  if not strings then return nil, message end
  if not strings.id or not strings.value then
    return nil, "has no table StringIds with the names of kernels"
  end
  return names
end

-- { [id of the name] = { [duration in ns] = calls } }, or nil, message.
local function count_durations(database, name_column)
  local by_id, broken = {}, 0
  local sql = ('SELECT "%s", "end" - start FROM %s'):format(name_column, kernel_table)
  local done, message = database:query(sql, function(id, duration)
    if not id or math.type(duration) ~= "integer" or duration < 0 then
      broken = broken + 1
      return
    end
    local calls = by_id[id]
    if not calls then
      calls = {}
      by_id[id] = calls
    end
    calls[duration] = (calls[duration] or 0) + 1
  end)
  if not done then return nil, message end
  if broken > 0 then
    return nil, ("%d of its kernels have no name, no end, or an end before the start"):format(broken)
  end
  if not next(by_id) then
    return nil, ("its table %s is empty: no CUDA kernel was traced"):format(kernel_table)
  end
  return by_id
end

-- The text of a name; some exports have it in place of its id. nil, message if it is missing.
local function name_of(database, id)
  if type(id) == "string" then return id end
  local name
  local done, message = database:query("SELECT value FROM StringIds WHERE id = ?", function(value)
    name = value
  end, id)
  if not done then return nil, message end
  if not name then return nil, ("its table StringIds has no name %s, which a kernel refers to"):format(id) end
  return name
end

-- Adds up the durations of ids with the same text; or nil, message.
local function by_text(database, by_id)
  local by_name = {}
  for id, calls in pairs(by_id) do
    local name, message = name_of(database, id)
    if not name then return nil, message end
    local known = by_name[name]
    if not known then
      by_name[name] = calls
    else
      for duration, count in pairs(calls) do known[duration] = (known[duration] or 0) + count end
    end
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

local function read_kernels(database)
  local names, message = check_schema(database)
  if not names then return nil, message end
  local by_id, by_name
  by_id, message = count_durations(database, names[1])
  if not by_id then return nil, message end
  by_name, message = by_text(database, by_id)
  if not by_name then return nil, message end
  local kernels = {}
  for name, calls in pairs(by_name) do kernels[#kernels + 1] = summarize(name, calls) end
  table.sort(kernels, ordering.by("-total_ns", "instances", "name")) -- as nsys stats
  return kernels
end

-- The kernels in the database at `path`, or nil, message.
function kernel_summary_sqlite.read(path)
  local core = optional "core.sqlite"
  if not core then
    return nil, path .. ": gentables was built without SQLite; give the CSV of nsys stats --format csv"
  end
  local database, message = core.open(path)
  if not database then return nil, ("%s: cannot be read: %s"):format(path, message) end
  local kernels
  kernels, message = read_kernels(database)
  database:close()
  if not kernels then return nil, ("%s: %s"):format(path, message) end
  return kernels
end

return kernel_summary_sqlite
