-- Writes rows of `gentables tune` into an existing file of rows of the same machine. New rows replace all
-- rows of their cells, because times of different launches are not comparable; rows of other cells stay, also
-- those of a sweep or of another bench. The provenance then lists the fingerprints of all.
local cell_records = require "rows.cell_records"
local fail = require "base.fail"
local file = require "core.file"
local folder_lock = require "rows.folder_lock"
local json = require "codec.json"
local lists = require "lists.lists"
local machines = require "machine.machines"
local provenance = require "rows.provenance"
local rows = require "core.rows"
local sequences = require "base.sequences"

local merge_rows = {}

local function cell_of(record)
  local size = record.num_tokens and "" or " " .. record.size
  return cell_records.key(cell_records.record(record)) .. size
end

-- The rows at `csv`: { records, record = its provenance }; nil without a file. Raises if they have no
-- provenance, or are of another machine.
function merge_rows.read(job, csv)
  if not file.exists(csv) then return nil end
  local json_path = provenance.path_of(csv)
  if not file.exists(json_path) then
    fail.input("%s: no %s beside it, so the machine of its rows is unknown; another --out is required", csv,
      json_path:match("[^/]*$"))
  end
  local record = fail.unless(provenance.read(json_path))
  if not provenance.describes(record, fail.unless(file.read(csv))) then
    fail.input("%s: is not of the rows in %s; another --out is required", json_path, csv)
  end
  if not machines.same(record.machine, job.machine) then
    fail.input("%s: rows of %s, and this is %s; they differ in %s; another --out is required", csv,
      machines.describe(record.machine), machines.describe(job.machine),
      machines.differences(record.machine, job.machine))
  end
  return { records = fail.unless(rows.records(csv)), record = record }
end

-- The cells of these records, as a set.
local function cells_of(records) return sequences.set(sequences.map(records, cell_of)) end

-- The records of both; how many of the old ones stay, and how many are replaced.
local function join(old, records)
  local is_new = cells_of(records)
  local stay = sequences.filter(old.records, function(record) return not is_new[cell_of(record)] end)
  return sequences.join { records, stay }, #stay, #old.records - #stay
end

-- The old entries without a time, except those of cells that were measured now.
local function no_time_of(old, records, record)
  local is_new, ranks = cells_of(records), { world_size = record.world_size, nodes = record.nodes }
  return sequences.filter(old.record.no_time, function(entry)
    return not is_new[cell_of(cell_records.record(entry, nil, ranks))]
  end)
end

local function plugins_of(before, now)
  if not before or not now then return now or before end
  local is_now = sequences.set(sequences.field(now.candidates, "strategy"))
  local others = sequences.filter(before.candidates, function(entry) return not is_now[entry.strategy] end)
  local candidates = sequences.append(sequences.append(json.array {}, now.candidates), others)
  return { libraries = now.libraries, candidates = candidates }
end

-- The provenance of the rows of both: `record`, completed by the old one.
local function complete(record, before)
  local kept = { "spec", "complete", "budget_s", "derived", "exhaustive", "roundtrip_us", "devices" }
  for _, name in ipairs(kept) do record[name] = before[name] end
  record.launches = math.min(record.launches, before.launches or record.launches)
  record.plugins = plugins_of(before.plugins, record.plugins)
  if record.placement ~= before.placement then record.placement = "unknown" end
  if record.fingerprint == before.fingerprint then return record end
  local prints = sequences.append(json.array {}, before.bench.merged or { before.fingerprint })
  if not lists.contains(prints, record.fingerprint) then prints[#prints + 1] = record.fingerprint end
  record.bench = { merged = prints }
  record.fingerprint = provenance.imported_fingerprint(record.machine, record.bench)
  return record
end

-- Writes records and their provenance to `csv`, beside the old rows that stay, and prints how many do.
function merge_rows.write(job, csv, records, record)
  local _ <close> = folder_lock.of_rows(csv)
  local old = merge_rows.read(job, csv)
  local all, stay, go = records, 0, 0
  if old then
    all, stay, go = join(old, records)
    record = complete(record, old.record)
    record.no_time = no_time_of(old, records, record)
  end
  local text = fail.unless(rows.text(csv, all))
  fail.unless_done(provenance.write(csv, text, record))
  if old then
    local words = "gentables: %s: %d rows of cells that were measured now are replaced by %d; %d others stay"
    job.progress:print(words:format(csv, go, #records, stay))
  end
end

return merge_rows
