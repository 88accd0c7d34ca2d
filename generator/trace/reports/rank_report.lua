-- The report of one rank: all its sheets, and where they go. For the command (verbs/trace/report.lua) and for
-- whoever has a trace open.
--
--   local rank = require("trace.ops.rank").open(path)
--   local list, notes = per_rank.sheets(rank, { short_limit = 50 })
--   per_rank.write(list, { folder = "out/x_csvs", xlsx = "out/x.xlsx" })
--
-- options: include_unlinked, micro_idle (µs), short_limit (µs), bins, top_short, kernel_summary and
-- collectives (false: without), by_kernel_count.
local sheets = require "pages.sheets"
local sorted_keys = require "base.sorted_keys"

local per_rank = {}

per_rank.defaults = { short_limit = 10, bins = 100 }

-- What is said of each flaw of a trace, by its name in core.trace.
local flaws = {
  malformed = "events without a usable name, ts or dur, or in halves, are left out",
  mended = "texts with control characters or invalid UTF-8 are mended",
  negative = "durations below zero are taken as zero",
  overlapping = "host events that overlap without nesting have no op around them",
  unlinked = "GPU events have no launch: they are in kernel_summary, and in gpu_timeline if asked for",
}

local function add_flaws(notes, info)
  for _, flaw in ipairs(info.flaws) do
    local first = flaw.first_byte and "byte " .. flaw.first_byte
    if flaw.first_uid then first = "event " .. flaw.first_uid end
    notes[#notes + 1] = { flaw.name, flaw.count, first, flaws[flaw.name] }
  end
end

local function add_gaps(notes, analysis, times)
  local counts = analysis:counts()
  if counts.overlapping > 0 then
    notes[#notes + 1] = { "overlapping GPU", counts.overlapping, "event " .. counts.first_overlapping,
      "GPU events that begin before the last one of their stream ends are clipped to begin when it does" }
  end
  if counts.gpu_events == 0 then
    notes[#notes + 1] = { "no GPU events", 0, nil,
      "nothing ran on a GPU: times are zero, and the sheets of ops and kernels are empty" }
  elseif times.events == 0 then
    notes[#notes + 1] = { "no linked GPU events", 0, nil,
      "no GPU event has a launch: the sheets of ops are empty, and gpu_timeline without --include-unlinked" }
  end
end

local function add_left_out(notes, left_out, idle, nested)
  for _, reason in ipairs(sorted_keys(left_out)) do
    notes[#notes + 1] = { "left out", left_out[reason], nil, reason }
  end
  if idle > 0 then
    notes[#notes + 1] = { "without GPU events", idle, nil,
      "ops that launched nothing count with a time of 0 in the sheets of their families" }
  end
  if nested > 0 then
    notes[#notes + 1] = { "nested ops", nested, nil, "ops below another one of their sheet, as div in div: "
      .. "both are listed, so the times of that sheet add up to more than the GPU worked" }
  end
end

local function with_defaults(options)
  return setmetatable({}, { __index = function(_, key)
    local value = options and options[key]
    if value == nil then value = per_rank.defaults[key] end
    return value
  end })
end

-- All sheets of a rank, in order, and rows { what, count, where first, note } of what is incomplete; they are
-- the last sheet, `incomplete`, where there are any.
function per_rank.sheets(rank, options)
  options = with_defaults(options)
  local timeline, times = require("trace.sheets.timeline").make(rank, options)
  local list = { timeline, require("trace.sheets.ops").make(rank, options) }
  list[#list + 1] = require("trace.sheets.unified").make(rank)
  local kernels = require("trace.sheets.kernels").make(rank, options, times.total)
  table.move(kernels, 1, #kernels, #list + 1, list)
  local per_op, left_out, idle, nested = require("trace.sheets.per_op").make(rank)
  table.move(per_op, 1, #per_op, #list + 1, list)
  local notes = {}
  add_flaws(notes, rank.trace:info())
  add_gaps(notes, rank.analysis, times)
  add_left_out(notes, left_out, idle, nested)
  if options.collectives ~= false then
    local rank_sheets = require "trace.collectives.rank_sheets"
    list[#list + 1] = rank_sheets.summary_long(rank.trace, rank.trace:info().rank or 0)
  end
  if #notes > 0 then
    list[#list + 1] = { name = "incomplete", columns = { "what", "count", "first", "note" }, rows = notes }
  end
  return list, notes
end

-- Writes the sheets; paths = { folder, xlsx }, each or both. Raises where that fails.
function per_rank.write(list, paths) sheets.save(list, paths) end

-- What is incomplete in one line, for stderr; nil: nothing is.
function per_rank.warning(path, notes)
  if #notes == 0 then return nil end
  local counts, names = {}, {}
  for _, note in ipairs(notes) do
    if not counts[note[1]] then names[#names + 1] = note[1] end
    counts[note[1]] = (counts[note[1]] or 0) + note[2]
  end
  for i, name in ipairs(names) do names[i] = counts[name] > 0 and name .. " " .. counts[name] or name end
  return ("%s: incomplete: %s; the sheet incomplete says more"):format(path, table.concat(names, ", "))
end

return per_rank
