-- The report of one rank: the sheets of trace/reports/list.lua, and their paths.
--
--   local rank = require("trace.ops.rank").open(path)
--   local made, notes = rank_report.sheets(rank, { short_limit = 50 })
--   rank_report.write(made, { folder = "out/x_csvs", xlsx = "out/x.xlsx" })
--
-- options: include_unlinked, micro_idle (µs), short_limit (µs), bins, top_short, kernel_summary and
-- collectives (false: without), by_kernel_count, stacks (of a trace that was opened with frames), rank (that
-- of the trace's path; nil: that in the trace).
local list = require "trace.reports.list"
local sheets = require "pages.sheets"

local rank_report = {}

rank_report.defaults = { short_limit = 10, bins = 100 }

-- The note on each flaw of a trace, by its name in core.trace.
local flaws = {
  malformed = "events without a usable name, ts or dur, or in halves, are left out",
  mended = "texts with control characters or invalid UTF-8 are mended",
  negative = "durations below zero are taken as zero",
  overlapping = "host events that overlap without nesting have no op around them",
  unlinked = "GPU events have no launch: they are in kernel_summary; --include-unlinked counts them",
  ["graph kernels without an op"] = "of %d GPU events of replayed graphs: no captured graph has such a "
    .. "kernel at its place, or several have it with other ops",
  ["graph kernels with several captured graphs"] = "of %d GPU events of replayed graphs: captured graphs "
    .. "with other ops or arguments match as well, so the op or the arguments are left out",
  ["graph kernels not compared"] = "of %d GPU events of replayed graphs: there are too many kernels to find "
    .. "their places in all captured graphs",
  ["no launch of a graph"] = "--capture has no effect",
}

local function add_flaws(notes, info)
  for _, flaw in ipairs(info.flaws) do
    local first = flaw.first_byte and "byte " .. flaw.first_byte
    if flaw.first_uid then first = "event " .. flaw.first_uid end
    notes[#notes + 1] = { flaw.name, flaw.count, first,
      flaws[flaw.name]:format(info.graph_events) }
  end
end

local function with_defaults(options)
  return setmetatable({}, { __index = function(_, key)
    local value = options and options[key]
    if value == nil then value = rank_report.defaults[key] end
    return value
  end })
end

-- All sheets of a rank, in order, and rows { what, count, where first, note } on incomplete parts; if there
-- are any, they are the last sheet, `incomplete`.
function rank_report.sheets(rank, options)
  local notes = {}
  add_flaws(notes, rank.trace:info())
  local made = list.make_of_rank(rank, with_defaults(options), notes)
  if #notes > 0 then
    made[#made + 1] = { name = "incomplete", columns = { "what", "count", "first", "note" }, rows = notes }
  end
  return made, notes
end

-- Writes the sheets; paths: as of sheets.save. Raises if that fails.
function rank_report.write(made, paths) sheets.save(made, paths) end

-- The incomplete parts in one line, for stderr; nil: there are none.
function rank_report.warning(path, notes)
  if #notes == 0 then return nil end
  local counts, names = {}, {}
  for _, note in ipairs(notes) do
    if not counts[note[1]] then names[#names + 1] = note[1] end
    counts[note[1]] = (counts[note[1]] or 0) + note[2]
  end
  for i, name in ipairs(names) do names[i] = counts[name] > 0 and name .. " " .. counts[name] or name end
  return ("%s: incomplete: %s; see the sheet incomplete"):format(path, table.concat(names, ", "))
end

return rank_report
