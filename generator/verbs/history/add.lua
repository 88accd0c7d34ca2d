-- gentables history add: adds the rows of sweeps to a history.
local fail = require "base.fail"
local history_entries = require "history.history_entries"
local history_store = require "history.history_store"

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
  example = "gentables history add tables/host --database history.db",
  run = function(args)
    if args.date then check_date(args.date) end
    local entries = history_entries.of(args, args.date)
    local store = history_store.open(args.database, true)
    for _, entry in ipairs(entries) do
      local words = { added = "added     ", known = "unchanged ", replaced = "continued " }
      io.stdout:write(words[store:add(entry)], entry.path, "\n")
    end
    store:close()
  end,
}
