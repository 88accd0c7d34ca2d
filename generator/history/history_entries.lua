-- Benchmark files as entries of a history (history_store).
local fail = require "base.fail"
local file = require "core.file"
local provenance = require "rows.provenance"
local rank_placement = require "lists.rank_placement"
local rows = require "core.rows"
local run_changes = require "history.run_changes"
local sequences = require "base.sequences"

local history_entries = {}

-- The benchmark files of an argument, a file or a folder.
local function files_of(path)
  local names = file.list(path)
  if not names then return { path } end
  path = path:gsub("(.)/+$", "%1")
  local out = sequences.map(names, function(name)
    return rank_placement.of_file_name(name) and path .. "/" .. name or nil
  end)
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

local function entry_of(path, date)
  local text = fail.unless(file.read(path))
  local records, record = fail.unless(rows.records(path)), record_of(path, text)
  if not records[1] then fail.input("%s: has no rows", path) end
  date = record.date or date
  if not date then
    fail.input("%s: the date of the sweep is unknown; give --date, such as 2026-01-31T12:00:00Z", path)
  end
  local _, _, named_arch = rank_placement.of_file_name(path)
  local arch = record.arch or named_arch
  if not arch then fail.input("%s: the arch is unknown; name the file benchmark.tp{N}.{arch}.csv", path) end
  return { arch = arch, world_size = records[1].world_size, nodes = records[1].nodes, date = date,
    hash = provenance.hash(text), records = records, provenance = run_changes.facts(record) }
end

-- The entries of benchmark files, or of folders of them, sorted by name in a folder; each has its file in
-- `path`. date: of rows without provenance, or nil. Raises a failure where a file is no sweep with a date.
function history_entries.of(paths, date)
  return sequences.map(sequences.join(paths, files_of), function(name)
    return sequences.merged(entry_of(name, date), { path = name })
  end)
end

return history_entries
