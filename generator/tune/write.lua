-- The files of `gentables tune`: tuned.json (document.lua), gentables_tuned.py rendered from it, hooks for
-- PyTorch, gentables_torch.py (both in templates/tune), and, with several launches, rows for tables.
local choice_lookup = require "core.lookup_rule"
local document = require "tune.document"
local fail = require "base.fail"
local file = require "core.file"
local folder_lock = require "rows.folder_lock"
local json = require "codec.json"
local lists = require "lists.lists"
local merge_rows = require "tune.merge_rows"
local provenance = require "rows.provenance"
local rank_placement = require "lists.rank_placement"
local sequences = require "base.sequences"
local tables = require "core.table"
local template = require "codec.template"
local to_rows = require "tune.to_rows"

local write = {}

-- The results of this run as JSON.
function write.json(job) return json.encode(document.of(job)) end

-- ---- Python -----------------------------------------------------------------------------------

-- The choice in a cell for `epilogue` (nil: without one), as { strategy, epilogue }; nil without a choice.
local function chosen_in(cell, epilogue)
  if cell.is_default then return { strategy = cell.strategy, epilogue = "separate" } end
  local strategy = cell.strategy
  if cell.fusion and not epilogue then strategy = cell.plain_strategy end
  return strategy and { strategy = strategy, epilogue = cell.epilogue }
end

-- The group of a cell in `groups`; adds it if it is new.
local function group_of(groups, by_key, cell, epilogue)
  local key = ("%s %d %d %s %s"):format(cell.op, cell.world_size, cell.nodes or 1, cell.dtype, epilogue)
  return sequences.entry(groups, by_key, key, function()
    return { op = cell.op, world_size = cell.world_size, nodes = cell.nodes, dtype = cell.dtype,
      splits = cell.splits, epilogue = epilogue, chosen = {}, by_size = {}, times = {} }
  end)
end

-- The times of a cell's candidates without an epilogue.
local function times_of(cell)
  local candidates = sequences.filter(cell.candidates, function(candidate)
    local is_plain = candidate.epilogue ~= "fused" and candidate.epilogue ~= "separate"
    return is_plain and candidate.time_us
  end)
  return { size = cell.size, candidates = candidates }
end

-- Neighbouring sizes with the same choice are one range; the border between two sizes is their geometric
-- mean, rounded down.
local function add_ranges(found)
  local function is_smaller(a, b) return a.size < b.size end
  table.sort(found.chosen, is_smaller)
  table.sort(found.times, is_smaller)
  local sizes, last = sequences.field(found.chosen, "size"), nil
  local borders = choice_lookup.borders(sizes)
  found.ranges = {}
  for i, chosen in ipairs(found.chosen) do
    local is_same = last and last.strategy == chosen.strategy
      and (not found.epilogue or last.epilogue == chosen.epilogue)
    if not is_same then
      last = { strategy = chosen.strategy, epilogue = chosen.epilogue }
      table.insert(found.ranges, last)
    end
    last.largest = i < #sizes and borders[i] or false
  end
end

-- The choices for plain calls by op, TP size, nodes (nil: one), dtype: groups with ranges = { { largest =
-- bytes (false: any), strategy }... }; with `of_pairs`: those for an allreduce with its epilogue, also by
-- epilogue, with the way of the epilogue in each range. Of several cells of one size the first, which is the
-- newest, counts; of an alltoallv the splits of the first, because a call names none.
local function ranges_of(cells, of_pairs)
  local groups, by_key = {}, {}
  for _, cell in ipairs(cells) do
    local epilogue = of_pairs and cell.fusion or nil
    local chosen = (epilogue or not of_pairs) and chosen_in(cell, epilogue)
    local found = chosen and group_of(groups, by_key, cell, epilogue)
    if found and found.splits ~= cell.splits then
      found.other_splits = cell.splits
    elseif found and not found.by_size[cell.size] then
      found.by_size[cell.size], chosen.size = true, cell.size
      table.insert(found.chosen, chosen)
      table.insert(found.times, times_of(cell))
    end
  end
  for _, found in ipairs(groups) do add_ranges(found) end
  return groups
end

local TEMPLATES = gentables.home .. "/templates/tune/"

-- gentables_tuned.py: the choices, then the ops that make them.
local function python(whole)
  local model = { groups = ranges_of(whole.cells), pair_groups = ranges_of(whole.cells, true),
    default = whole.default, lists = lists }
  local parts = sequences.map({ "tuned.py.tmpl", "ops.py.tmpl" }, function(name)
    return template.load(TEMPLATES .. name)(model)
  end)
  return table.concat(parts)
end

-- ---- rows -------------------------------------------------------------------------------------

-- The provenance of the rows, in the form of a sweep's; with the parameters of plug-ins.
local function provenance_of(job, world_size, records)
  local plugins = sequences.map(job.candidates, function(candidate)
    local name = to_rows.name(job, candidate.name)
    local is_usual = candidate.plugin and candidate.usual
    return is_usual and { strategy = name, parameters = candidate.parameters } or nil
  end)
  local limits = { min_samples = job.samples, max_samples = job.samples, cell_us = 0 }
  local spans = rank_placement.spans(job.nodes)
  return { world_size = world_size, arch = job.arch, machine = job.machine, bench = job.identity,
    nodes = spans and job.nodes or nil,
    network = spans and job.network or nil,
    fingerprint = provenance.fingerprint(job.machine, { bench = job.identity, plugins = job.libraries },
      limits, job.launcher),
    launches = job.launches, placement = records[1].placement, date = os.date("!%Y-%m-%dT%H:%M:%SZ"),
    plugins = #plugins > 0 and { libraries = job.libraries, candidates = json.array(plugins) } or nil,
    no_time = {} }
end

local function rows_path(job, folder, world_size)
  return ("%s/%s.csv"):format(folder, rank_placement.file_name(world_size, job.nodes, job.arch))
end

local function write_rows(job, folder, world_size)
  local records = to_rows.records(job, world_size)
  if #records == 0 then return end
  merge_rows.write(job, rows_path(job, folder, world_size), records, provenance_of(job, world_size, records))
end

-- Reads the files in `folder` before anything is measured. Raises if rows or choices are of another machine;
-- a table there keeps the choices that hardly lose, as in `gentables generate`.
function write.prepare(job, folder)
  for _, world_size in ipairs(job.launches > 1 and job.world_sizes or {}) do
    local csv = rows_path(job, folder, world_size)
    local _ <close> = folder_lock.of_rows(csv)
    merge_rows.read(job, csv)
  end
  document.read(folder .. "/tuned.json", job)
  local path = folder .. "/table.csv"
  local stays, arch
  if file.exists(path) then stays, arch = tables.read(path) end
  job.stays = stays and arch == job.arch and stays or nil
end

-- Writes all files into `folder`. Choices and rows that another run has added there since write.prepare stay.
-- The choices and Python are complete before the first write: an error leaves none half-written.
function write.all(job, folder)
  fail.unless(file.make_folder(folder))
  local _ <close> = folder_lock.take(folder)
  local before = document.read(folder .. "/tuned.json", job)
  local whole, words = document.of(job), nil
  if before then whole, words = document.join(whole, before, job.plugins) end
  local choices, module = json.encode(whole) .. "\n", python(whole)
  local hooks = fail.unless(file.read(TEMPLATES .. "gentables_torch.py"))
  fail.unless_done(file.write(folder .. "/tuned.json", choices))
  fail.unless_done(file.write(folder .. "/gentables_tuned.py", module))
  fail.unless_done(file.write(folder .. "/gentables_torch.py", hooks))
  if words then
    job.progress:print(("gentables: %s/tuned.json, gentables_tuned.py: %s"):format(folder, words))
  end
  for _, world_size in ipairs(job.launches > 1 and job.world_sizes or {}) do
    write_rows(job, folder, world_size)
  end
end

return write
