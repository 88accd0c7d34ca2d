-- Merges the traces of a configuration's ranks into one for a viewer: the files, their names, and notes for
-- the user. merge_events.h describes the changes of events.
local core = require "core.merge"
local fail = require "base.fail"
local file = require "core.file"
local run_folder = require "trace.runs.run_folder"
local sequences = require "base.sequences"
local statistics = require "base.statistics"
local workers = require "system.workers"

local merging = {}

-- The events that a merged trace keeps.
merging.categories = { "kernel", "gpu_memcpy", "gpu_memset", "cuda_runtime", "cuda_driver",
  "gpu_user_annotation", "user_annotation", "ac2g", "fwdbwd", "cpu_instant_event" }

-- The notes on one rank's events.
local event_notes = {
  { count = "malformed", text = "%s: %d events are left out: without a usable name, time or duration" },
  { count = "negative", text = "%s: %d durations are negative; taken as 0" },
  { count = "long_ids", text = "%s: %d ids are too long to append the rank; shortened" },
}

local function notes_of_events(files, found, notes)
  for i, one in ipairs(found) do
    for _, row in ipairs(event_notes) do
      if one[row.count] > 0 then notes[#notes + 1] = row.text:format(files[i].path, one[row.count]) end
    end
    local gpu = (one.kept.kernel or 0) + (one.kept.gpu_memcpy or 0) + (one.kept.gpu_memset or 0)
    if gpu == 0 then notes[#notes + 1] = files[i].path .. ": has no GPU events" end
  end
end

-- Clocks are aligned by the files' bases; files without one cannot be aligned.
local function notes_of_clocks(files, found, notes)
  local known, unknown = 0, {}
  for i, one in ipairs(found) do
    if one.base_nanoseconds then known = known + 1 else unknown[#unknown + 1] = files[i].path end
  end
  if known > 0 and #unknown > 0 then
    notes[#notes + 1] = ("%s: no baseTimeNanoseconds, unlike others; the clock is not aligned"):format(
      table.concat(unknown, ", "))
  end
end

local function notes_of_ranks(configuration, found)
  local infos = {}
  for i, one in ipairs(found) do
    configuration.files[i].rank = one.rank
    infos[i] = { rank = one.file_rank, world_size = one.world_size }
  end
  local notes = run_folder.check(configuration, infos)
  for i, note in ipairs(notes) do notes[i] = ("%s: %s"):format(configuration.folder, note) end
  return notes
end

-- Inputs are never changed, even if one of them is given as the output.
local function is_an_input(path, files)
  local real_path = file.real_path(path)
  return real_path and sequences.any(files, function(entry)
    return real_path == file.real_path(entry.path)
  end)
end

-- Merges a configuration (of run_folder.find) to `path`, or leaves `path` unchanged. `options`: gzip (true,
-- false, or nil: by the name), keep (further categories), jobs. Returns { ranks, events, lone_flows, notes },
-- or nil, message.
function merging.merge(path, configuration, options)
  options = options or {}
  if configuration.problem then return nil, configuration.problem end
  if is_an_input(path, configuration.files) then
    return nil, path .. ": is one of the traces to be merged; give another --out"
  end
  local gzip = options.gzip
  if gzip == nil then gzip = path:find("%.gz$") ~= nil end
  if gzip and not core.can_gzip() then
    return nil, path .. ": gentables was built without zlib; give a name without .gz"
  end
  local categories = sequences.join { merging.categories, options.keep or {} }
  local found, message = core.write(path, configuration.files,
    { categories = categories, gzip = gzip, workers = options.jobs or workers.jobs() })
  if not found then return nil, message end
  local notes = notes_of_ranks(configuration, found)
  notes_of_events(configuration.files, found, notes)
  notes_of_clocks(configuration.files, found, notes)
  local events = 0
  for _, one in ipairs(found) do
    for _, count in pairs(one.kept) do events = events + count end
  end
  local lone = statistics.sum(sequences.field(found, "lone_flows"))
  return { ranks = #found, events = events - lone, lone_flows = lone, notes = notes, found = found }
end

-- As merging.merge; raises.
function merging.must_merge(path, configuration, options)
  local merged, message = merging.merge(path, configuration, options)
  if merged then return merged end
  local is_output = message:sub(1, #path) == path and message:find(": cannot be written: ", #path + 1, true)
  fail.with(is_output == #path + 1 and 1 or 2, "%s", message)
end

-- The file of a configuration in a folder of merged traces.
function merging.file_name(configuration, gzip)
  return run_folder.name(configuration) .. "_merged.json" .. (gzip and ".gz" or "")
end

return merging
