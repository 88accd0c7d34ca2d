-- gentables history add: adds the rows of sweeps to a history.
local fail = require "base.fail"
local file = require "core.file"
local history_store = require "history.history_store"
local provenance = require "rows.provenance"
local rows = require "core.rows"
local run_changes = require "history.run_changes"

-- The benchmark files of an argument, a file or a folder.
local function files_of(path)
  local names = file.list(path)
  if not names then return { path } end
  local out = {}
  path = path:gsub("(.)/+$", "%1")
  for _, name in ipairs(names) do
    if name:find("^benchmark%.tp%d+%..*%.csv$") then out[#out + 1] = path .. "/" .. name end
  end
  table.sort(out)
  if #out == 0 then fail.input("%s: has no benchmark.tp{N}.{arch}.csv; gentables sweep makes them", path) end
  return out
end

-- The provenance of a benchmark file; {} where it has none, and a failure if it is of other rows.
local function record_of(path, text)
  local json = provenance.path_of(path)
  if not file.exists(json) then return {} end
  local record = fail.unless(provenance.read(json))
  if not provenance.describes(record, text) then
    fail.input("%s: is of other rows than %s; sweep again, or remove it and give --date", json, path)
  end
  return record
end

local function is_day(text)
  local year, month, day = text:match("^(%d%d%d%d)%-(%d%d)%-(%d%d)$")
  if not year then return false end
  return os.date("%Y-%m-%d", os.time { year = year, month = month, day = day, hour = 12 }) == text
end

-- Whether a text is a time of a day, as T12:30, T12:30Z, T12:30:59 or T12:30:59Z.
local function is_time(text)
  local hour, minute, second = text:match("^T(%d%d):(%d%d)(.-)Z?$")
  if not hour then return false end
  return hour < "24" and minute < "60" and (second == "" or (second:match("^:(%d%d)$") or "60") < "60")
end

-- Raises unless a text is a date in UTC that sorts by time as text.
local function check_date(text)
  local day, time = text:sub(1, 10), text:sub(11)
  if is_day(day) and (time == "" or is_time(time)) then return end
  fail.input('--date: "%s" is not a date in UTC, such as 2026-01-31 or 2026-01-31T12:00:00Z', text)
end

local function entry_of(path, date)
  local text = fail.unless(file.read(path))
  local records, record = fail.unless(rows.records(path)), record_of(path, text)
  if not records[1] then fail.input("%s: has no rows", path) end
  date = record.date or date
  if not date then
    fail.input("%s: the date of the sweep is unknown; give --date, such as 2026-01-31T12:00:00Z", path)
  end
  local arch = record.arch or path:match("benchmark%.tp%d+%.([^/]*)%.csv$")
  if not arch then fail.input("%s: the arch is unknown; name the file benchmark.tp{N}.{arch}.csv", path) end
  return { arch = arch, world_size = records[1].world_size, date = date, hash = provenance.hash(text),
    records = records, provenance = run_changes.facts(record) }
end

return {
  summary = "Adds the rows of sweeps to a history. Rows that it already has are left out.",
  positional = { name = "ROWS...", min = 1, max = math.huge,
    help = "benchmark files, or folders of them" },
  options = {
    { name = "database", value = "FILE", default = "build/history.db",
      help = "the history, an SQLite database, which is made if missing" },
    { name = "date", value = "DATE", help = "date of the sweep in UTC, such as 2026-01-31T12:00:00Z, "
      .. "for rows without provenance" },
  },
  example = "gentables history add tables/host --database build/history.db",
  run = function(args)
    if args.date then check_date(args.date) end
    local entries = {}
    for _, path in ipairs(args) do
      for _, name in ipairs(files_of(path)) do
        entries[#entries + 1] = entry_of(name, args.date)
        entries[#entries].path = name
      end
    end
    local store = history_store.open(args.database, true)
    for _, entry in ipairs(entries) do
      local words = { added = "added     ", known = "unchanged ", replaced = "continued " }
      io.stdout:write(words[store:add(entry)], entry.path, "\n")
    end
    store:close()
  end,
}
