-- gentables replay: GEMMs and convolutions of a trace, computed again on this machine with warm and with cold
-- caches, each result checked. replay/chosen_ops.lua chooses them; bench/replay computes them. Saved ops are
-- replayed without a trace.
local example_of = require("trace.runs.example").of
local fail = require "base.fail"
local file = require "core.file"
local job = require "trace.runs.job"
local chosen_ops = require "replay.chosen_ops"
local request = require "replay.request"
local replay_run = require "replay.replay_run"
local sequences = require "base.sequences"
local sheets = require "pages.sheets"

local NAME = "node_replay_report"

-- ---- from traces ---------------------------------------------------------------------------------------

-- The ops of the ranks of a configuration with readable traces.
local function lists_of(configuration, answers)
  return sequences.map(configuration.files, function(entry)
    local list = answers[entry]
    if list then list.path = entry.path end
    return list
  end)
end

local function base_of(configuration, count)
  local words = {}
  if configuration.threads then words[1] = ("%dthread"):format(configuration.threads) end
  if configuration.channels then words[#words + 1] = ("%dch"):format(configuration.channels) end
  if count == 1 or #words == 0 then return NAME end
  return table.concat(words, "_") .. "_" .. NAME
end

-- The traces that were read, as text: the configuration's folder, or its first file and the number of others
-- if some are in other folders.
local function name_of(configuration)
  local folder, files = configuration.folder .. "/", configuration.files
  local is_elsewhere = sequences.any(files, function(entry) return entry.path:sub(1, #folder) ~= folder end)
  if not is_elsewhere then return configuration.folder end
  return #files == 1 and files[1].path or ("%s and %d more"):format(files[1].path, #files - 1)
end

local function replay_configuration(work, configuration, lists, options, out, count)
  local chosen = chosen_ops.choose(lists)
  if #chosen.gemm + #chosen.conv == 0 then
    return work:fail(chosen_ops.nothing(configuration.files, chosen), 2)
  end
  local base = base_of(configuration, count)
  options.name = name_of(configuration)
  options.ops_folder = ("%s/%s_ops"):format(out, base)
  local list, summary = replay_run.run(chosen, options)
  work:save(list, out .. "/" .. base)
  replay_run.print_summary(summary, options.name)
  replay_run.raise(summary)
  if summary.timed == 0 then work:fail(("%s: %s"):format(options.name, replay_run.NONE_TIMED), 1) end
end

local function replay_traces(args, options)
  if not args.out then fail.input("replay needs --out DIR; see gentables replay --help") end
  local work = job.new(args)
  local usable = work:usable()
  local answers = work:read(usable, function(source) return chosen_ops.collect(source.rank) end,
    { is_beginning = true, needs_trace = "replay needs the trace, with all arguments of its ops" })
  for _, configuration in ipairs(usable) do
    local lists = lists_of(configuration, answers)
    if #lists > 0 then replay_configuration(work, configuration, lists, options, args.out, #usable) end
  end
  return work:finish()
end

-- ---- from saved ops ------------------------------------------------------------------------------------

-- The ops of these files; chosen.threads: the threads of a call, from the first op that has them.
local function read_ops(paths)
  local chosen = { gemm = {}, conv = {}, devices = {}, notes = {} }
  for _, path in ipairs(paths) do
    local number = 0
    for line in (fail.unless(file.read(path)) .. "\n"):gmatch("(.-)\r?\n") do
      number = number + 1
      if line ~= "" then
        local one, id = request.read(line)
        if not one then
          fail.input("%s:%d: %s; an op that gentables replay saved is required", path, number, id)
        end
        local list = one.kind == "gemm" and chosen.gemm or chosen.conv
        chosen.threads = chosen.threads or request.value(one, "threads")
        list[#list + 1] = { name = one.kind, request = one, id = id, params = {}, is_amd = false }
      end
    end
  end
  return chosen
end

-- Prints each row as soon as it is measured.
local function print_row(row)
  local at = row.answer
  local note = row.note ~= "" and "; " .. row.note or ""
  print(at and ("%-20s %12.2f %12.2f  %s in %s, %s%s"):format(row.id, at.warm.median, at.cold.median, at.by,
    at.computed, at.kernel, note) or ("%-20s %s"):format(row.id, row.note))
  io.stdout:flush()
end

local function replay_saved(args, options)
  options.name, options.on_row = "saved ops", print_row
  local chosen = read_ops(args)
  print(("%-20s %12s %12s  %s"):format("op", "warm (us)", "cold (us)", "by"))
  local list, summary = replay_run.run(chosen, options)
  if summary.problem and not summary.signal then fail.work("%s", summary.problem) end
  for _, why in ipairs(summary.absent) do fail.note(why) end
  if args.out then
    fail.unless(file.make_folder(args.out))
    local base = args.out .. "/" .. NAME
    sheets.choose(args)
    sheets.save(list, sheets.paths(base, args))
  end
  replay_run.raise(summary)
  return summary.timed == summary.ops and 0 or 1
end

local function are_saved(args)
  local count = #sequences.filter(args, function(path) return path:find("%.op$") end)
  if count > 0 and count < #args then
    fail.input("saved ops and traces together; either of them is required")
  end
  return count > 0
end

return {
  summary = "Runs the GEMMs and convolutions with 99 % of their kind's kernel time again on this machine.",
  positional = { name = "PATH...", min = 0, max = math.huge,
    help = "a trace of each rank, a sweep, or a configuration's folder; or saved ops (.op)" },
  options = job.options({
    { name = "out", value = "DIR", help = "folder of the report and of the saved ops" },
    { name = "device", value = "NAME", help = "host or cuda (default: cuda if there is a GPU)" },
    { name = "budget", value = "SECONDS", type = "number", above = 0,
      help = "time for all ops; the report lists those that it did not reach" },
    { name = "samples", value = "N", type = "whole",
      help = "warm and cold calls of each op (default: 5 to 50)" },
    { name = "try-all", help = "try all libraries and time the fastest; the report has its gain" },
    { name = "threads-per-call", value = "N", type = "whole",
      help = "threads of a call (default: as in a trace of this processor, or one for each core)" },
    { name = "bench", trusted = true, value = "PROGRAM",
      help = "replay program (default: the gentables-replay beside gentables)" },
    { name = "timeout", value = "SECONDS", type = "number", above = 0, most = 1e9,
      help = "stall timeout of the replay program (default: 60 at its start, 900 for an op)" },
  }, true),
  example = example_of "replay {SWEEP} --out replay",
  run = function(args)
    local options = replay_run.options(args)
    if are_saved(args) then return replay_saved(args, options) end
    return replay_traces(args, options)
  end,
}
