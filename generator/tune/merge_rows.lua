-- Rows of `gentables tune` into a file of rows that is there already, of the same machine: rows of other
-- cells stay, and those of a cell that was measured now go, for times of different launches are compared with
-- nobody's. What another bench, or a sweep, measured keeps company with them, as `gentables merge` would have
-- it, and the provenance says so.
local fail = require "base.fail"
local file = require "core.file"
local json = require "codec.json"
local lists = require "lists.lists"
local plan = require "rows.cells"
local provenance = require "rows.provenance"
local rows = require "core.rows"

local tune_merge = {}

local function cell_of(record)
  local size = record.num_tokens and "" or " " .. record.size
  return plan.key(plan.record(record)) .. size
end

-- What stands at `csv`: { records, record = its provenance }; nil: nothing does. Raises where it is nobody's,
-- or another machine's.
function tune_merge.read(job, csv)
  if not file.exists(csv) then return nil end
  local json_path = provenance.path_of(csv)
  if not file.exists(json_path) then
    fail.input("%s: no %s beside it says whose rows these are; another --out would be right", csv,
      json_path:match("[^/]*$"))
  end
  local record = fail.unless(provenance.read(json_path))
  if not provenance.describes(record, fail.unless(file.read(csv))) then
    fail.input("%s: tells of other rows than those in %s; another --out would be right", json_path, csv)
  end
  if not provenance.same_machine(record.machine, job.machine) then
    fail.input("%s: rows of %s, and this is %s; another --out would be right", csv,
      provenance.describe(record.machine), provenance.describe(job.machine))
  end
  return { records = fail.unless(rows.records(csv)), record = record }
end

-- The cells of these records, as a set.
local function cells_of(records)
  local cells = {}
  for _, record in ipairs(records) do cells[cell_of(record)] = true end
  return cells
end

-- Both together; how many of the old ones stay, and how many go.
local function join(old, records)
  local is_new, all = cells_of(records), table.move(records, 1, #records, 1, {})
  for _, record in ipairs(old.records) do
    if not is_new[cell_of(record)] then all[#all + 1] = record end
  end
  local stay = #all - #records
  return all, stay, #old.records - stay
end

-- What had no time, but for cells that were measured now.
local function no_time_of(old, records, world_size)
  local is_new, kept = cells_of(records), {}
  for _, entry in ipairs(old.record.no_time) do
    local is_measured = is_new[cell_of(plan.record(entry, nil, { world_size = world_size }))]
    if not is_measured then kept[#kept + 1] = entry end
  end
  return kept
end

local function plugins_of(before, now)
  if not before or not now then return now or before end
  local candidates, is_now = json.array {}, {}
  for i, entry in ipairs(now.candidates) do candidates[i], is_now[entry.strategy] = entry, true end
  for _, entry in ipairs(before.candidates) do
    if not is_now[entry.strategy] then candidates[#candidates + 1] = entry end
  end
  return { libraries = now.libraries, candidates = candidates }
end

-- What the rows of both are of: `record`, completed by what stood there.
local function complete(record, before)
  for _, name in ipairs { "spec", "complete", "derived", "exhaustive", "roundtrip_us", "devices" } do
    record[name] = before[name]
  end
  record.launches = math.min(record.launches, before.launches or record.launches)
  record.plugins = plugins_of(before.plugins, record.plugins)
  if record.placement ~= before.placement then record.placement = "unknown" end
  if record.fingerprint == before.fingerprint then return record end
  local prints = json.array {}
  for i, print in ipairs(before.bench.merged or { before.fingerprint }) do prints[i] = print end
  if not lists.contains(prints, record.fingerprint) then prints[#prints + 1] = record.fingerprint end
  record.bench = { merged = prints }
  record.fingerprint = provenance.imported_fingerprint(record.machine, record.bench)
  return record
end

-- Writes records and their provenance to `csv`, beside what stays there, and says what became of that.
function tune_merge.write(job, csv, records, record)
  local old = tune_merge.read(job, csv)
  local all, stay, go = records, 0, 0
  if old then
    all, stay, go = join(old, records)
    record = complete(record, old.record)
    record.no_time = no_time_of(old, records, record.world_size)
  end
  local text = fail.unless(rows.text(csv, all))
  local written, message = provenance.write(csv, text, record)
  if not written then fail.work("%s", message) end
  if old then
    local words = "gentables: %s: %d rows of cells that were measured now are replaced by %d; %d others stay"
    job.progress:say(words:format(csv, go, #records, stay))
  end
end

return tune_merge
