-- gentables trace merge: one trace of all ranks, for Perfetto; of a sweep, one for each configuration.
local example_of = require("trace.runs.example").of
local fail = require "base.fail"
local file = require "core.file"
local run_folder = require "trace.runs.run_folder"
local merging = require "trace.merge.merging"

local function ranks_below(count)
  local ranks = {}
  for rank = 0, count - 1 do ranks[rank] = true end
  return ranks
end

-- Removes the files after the first `count` that have no rank in their names.
local function take_first(configuration, count)
  for index = #configuration.files, count + 1, -1 do
    if not configuration.files[index].rank then table.remove(configuration.files, index) end
  end
end

local function find(args)
  local found = run_folder.find(args, { trace_name = args.trace_name })
  run_folder.refuse_digests(found.configurations, "trace merge needs the traces, with all events")
  if not args.tp then return found end
  local count = args.tp
  local named = { configurations = {}, sweep = found.sweep }
  for _, configuration in ipairs(found.configurations) do
    take_first(configuration, count)
    for index, entry in ipairs(configuration.files) do entry.rank = entry.rank or index - 1 end
    table.insert(named.configurations, configuration)
  end
  return run_folder.select(named, { ranks = ranks_below(count) })
end

-- The ranks of --tp that have no file.
local function missing(configuration, count)
  local there, out = {}, {}
  for _, entry in ipairs(configuration.files) do there[entry.rank] = true end
  for rank = 0, count - 1 do
    if not there[rank] then out[#out + 1] = rank end
  end
  return out
end

local function merge_one(path, configuration, args)
  local merged = merging.must_merge(path, configuration, { gzip = args.gzip, keep = args.keep })
  for _, note in ipairs(merged.notes) do fail.note("note: " .. note) end
  local absent = args.tp and missing(configuration, args.tp) or {}
  if #absent > 0 then
    fail.note("note: %s: no trace of rank %s; --tp is %s", configuration.folder,
      table.concat(absent, ", "), args.tp)
  end
  local left = merged.lone_flows > 0
    and ("; %d arrows without a second end are left out"):format(merged.lone_flows) or ""
  print(("%s: %d ranks, %d events%s"):format(path, merged.ranks, merged.events, left))
end

local function merge_all(found, args)
  fail.unless(file.make_folder(args.out))
  local failed = {}
  for _, configuration in ipairs(found.configurations) do
    local path = args.out .. "/" .. merging.file_name(configuration, args.gzip)
    local ok, problem = pcall(merge_one, path, configuration, args)
    if not ok then
      if not fail.is_failure(problem) then error(problem, 0) end
      fail.note(problem.message)
      failed[#failed + 1] = run_folder.name(configuration)
    end
  end
  if #failed > 0 then
    fail.work("%d of %d configurations are not merged: %s", #failed, #found.configurations,
      table.concat(failed, ", "))
  end
end

return {
  summary = "Merges the traces of all ranks into one that Perfetto shows, each rank in processes of its own.",
  positional = { name = "DIR | TRACE...", min = 1, max = math.huge,
    help = "a configuration's folder, a sweep, or the files of the ranks" },
  options = {
    { name = "out", short = "o", aliases = { "output" }, value = "FILE",
      help = "the merged trace, compressed if its name ends in .gz; of a sweep: a folder (default: "
        .. "merged_traces/ in it)" },
    { name = "tp", short = "n", value = "N", type = "whole",
      help = "only ranks 0 to N-1 (default: all)" },
    { name = "trace-name", value = "NAME", help = "the trace's file name in each rank's folder" },
    { name = "gzip", help = "compress it with gzip under any name" },
    { name = "keep", value = "CATEGORY", many = true,
      help = "keep events of this category, too: cpu_op, python_function, ..." },
  },
  example = example_of "trace merge {TRACES} -o merged.json.gz",
  run = function(args)
    local found = find(args)
    if not args.out and found.sweep then
      args.out = found.sweep .. "/merged_traces"
      return merge_all(found, args)
    end
    if not args.out then fail.input("trace merge needs --out FILE, unless it merges a sweep; see --help") end
    local wants_folder = #found.configurations > 1 or file.status(args.out) == "folder"
    if wants_folder then return merge_all(found, args) end
    merge_one(args.out, found.configurations[1], args)
  end,
}
