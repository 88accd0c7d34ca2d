-- Results for the page of a trace report: sheets of CSV files that are written already, with their paths. The
-- page shows values of these sheets only, so that it never differs from them.
--
--   local results = overview_results.open("out/overview.html")
--   local sheet = results:sheet("out/x_csvs", "gpu_timeline")   nil: there is no such file
--   sheet.rows[1].type, sheet.columns[1], sheet.path
--   results:link("out/x_csvs/gpu_timeline.csv")                 the path as seen from the page
--
-- A run is one configuration: { name = text or nil, traces = { { label =, csvs = folder or nil, against =
-- { csvs = folder, base = label, label = label } or nil }... }, batch = folder of sheets over ranks or nil,
-- collectives = folder or nil, notes = { text... } }. With `batch`, its traces have labels alone.
local csv = require "codec.csv"
local fail = require "base.fail"
local file = require "core.file"
local sequences = require "base.sequences"

local overview_results = {}
overview_results.__index = overview_results

-- The results that a page at `path` shows.
function overview_results.open(path)
  return setmetatable({ page = path, folder = path:match("^(.*)/[^/]*$") or ".", read = {} },
    overview_results)
end

-- A sheet of this folder with at least one row; nil if there is none. Raises if its file cannot be read.
function overview_results:sheet(folder, name)
  if not folder then return nil end
  local path = ("%s/%s.csv"):format(folder, name)
  if self.read[path] == nil then
    local found = file.exists(path) and fail.unless(csv.read(path))
    if found then found.path = path end
    self.read[path] = found and #found.rows > 0 and found or false
  end
  return self.read[path] or nil
end

-- Whether a folder has this sheet, without reading it.
function overview_results.has(folder, name)
  return folder ~= nil and file.exists(("%s/%s.csv"):format(folder, name))
end

-- The path of a file as seen from the page: that below the page's folder, or below the one above it.
function overview_results:relative(path)
  if self.folder == "." then return (path:gsub("^%./", "")) end
  local below = self.folder .. "/"
  if path:sub(1, #below) == below then return path:sub(#below + 1) end
  local above = (self.folder:match("^(.*/)[^/]*$") or "")
  if path:sub(1, #above) == above then return "../" .. path:sub(#above + 1) end
  return path
end

-- The same as a URL.
function overview_results:link(path)
  return (self:relative(path):gsub("[^%w%-%._~/]", function(char) return ("%%%02X"):format(char:byte()) end))
end

-- The label of a trace beside those of other runs.
function overview_results.label(run, trace)
  return run.name and run.name .. ", " .. trace.label or trace.label
end

-- ---- time lines --------------------------------------------------------------------------------

-- The time line of a trace: { label, path, ms = { [type] = number }, percent = { [type] = number } }.
local function time_line(label, sheet, ms, percent)
  local out = { label = label, path = sheet.path, ms = {}, percent = {} }
  for _, row in ipairs(sheet.rows) do
    out.ms[row.type], out.percent[row.type] = tonumber(row[ms]), tonumber(row[percent])
  end
  return out
end

-- The time lines of a run's traces; those without GPU events are left out.
function overview_results:time_lines(run)
  local over_ranks = self:sheet(run.batch, "gpu_timelines")
  local all = sequences.map(run.traces, function(trace)
    local prefix = over_ranks and ("rank_%d "):format(trace.rank) or ""
    local sheet = over_ranks or self:sheet(trace.csvs, "gpu_timeline")
    return sheet and time_line(trace.label, sheet, prefix .. "time ms", prefix .. "percent") or nil
  end)
  return sequences.filter(all, function(line) return (line.ms.total_time or 0) > 0 end)
end

-- The rows of the sheet grouped_breakdown with time, by time; the sum of all is none of them.
function overview_results.purposes(sheet)
  local function time(row) return tonumber(row["Time (s)"]) or 0 end
  local rows = overview_results.largest(sheet, math.huge, time)
  return sequences.filter(rows, function(row) return row.Group ~= "Total" and time(row) > 0 end)
end

-- The rows of a sheet with the largest number(row), at most `most` of them, the first of equal ones first.
function overview_results.largest(sheet, most, number)
  local order, rows = {}, sheet and sheet.rows or {}
  for i, row in ipairs(rows) do order[i] = { row = row, number = number(row) or -math.huge, place = i } end
  table.sort(order, function(a, b)
    if a.number ~= b.number then return a.number > b.number end
    return a.place < b.place
  end)
  local first = table.move(order, 1, math.tointeger(math.min(most, #order)), 1, {})
  return sequences.field(first, "row"), #rows
end

return overview_results
