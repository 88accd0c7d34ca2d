-- What `gentables tune` leaves: tuned.json, gentables_tuned.py (templates/tune), and, of several launches,
-- rows for tables.
local choice_lookup = require "lookup"
local fail = require "fail"
local file = require "core.file"
local json = require "json"
local lists = require "lists"
local merge = require "tune_merge"
local provenance = require "provenance"
local tables = require "core.table"
local template = require "template"
local tune_rows = require "tune_rows"

local write = {}

local function entry_json(entry)
  return json.object { { "strategy", entry.strategy }, { "epilogue", entry.epilogue },
    { "time_us", entry.time_us }, { "low_us", entry.low_us }, { "high_us", entry.high_us },
    { "launches_us", json.array(entry.launches) }, { "min_us", entry.first.min_us },
    { "mean_of_max_us", entry.first.mean_of_max_us }, { "max_of_means_us", entry.first.max_of_means_us },
    { "mean_us", entry.first.mean_us }, { "skew_us", entry.first.skew_us },
    { "bound_us", entry.first.bound_us }, { "accumulate", entry.first.accumulate },
    { "place", entry.first.place },
    { "fusion_gain", entry.fusion_gain } }
end

local function cell_json(cell)
  local candidates, without = json.array {}, json.array {}
  for i, entry in ipairs(cell.ranked) do candidates[i] = entry_json(entry) end
  for i, entry in ipairs(cell.no_time) do
    without[i] = json.object { { "strategy", entry.strategy }, { "reason", entry.reason } }
  end
  local ranks, op = cell.world_size, lists.find("ops", cell.op)
  local algbw = cell.best and cell.size / cell.best.time_us / 1000
  return json.object { { "op", cell.op }, { "world_size", ranks }, { "dtype", cell.dtype },
    { "size", cell.size }, { "splits", cell.splits }, { "fusion", cell.fusion },
    { "num_tokens", cell.num_tokens }, { "hidden_size", cell.fusion and cell.hidden_size or nil },
    { "strategy", cell.best and cell.best.strategy or cell.default },
    { "epilogue", cell.best and cell.best.epilogue },
    { "plain_strategy", cell.plain and cell.plain.strategy }, { "is_default", cell.default ~= nil },
    { "runner_up", cell.runner_up and cell.runner_up.strategy }, { "margin", cell.margin },
    { "sure", cell.sure }, { "algbw_GBps", algbw },
    { "busbw_GBps", algbw and algbw * op.bus_factor(ranks) },
    { "candidates", candidates }, { "no_time", without } }
end

-- All of it as JSON.
function write.json(job)
  local cells, excluded = json.array {}, {}
  for i, cell in ipairs(job.cells) do cells[i] = cell_json(cell) end
  for name, reason in pairs(job.excluded) do excluded[name] = reason end
  return json.encode(json.object { { "version", 1 }, { "default", job.default }, { "launches", job.launches },
    { "single_launch", job.launches == 1 }, { "excluded", next(excluded) and excluded or json.object {} },
    { "cells", cells } })
end

-- ---- Python -----------------------------------------------------------------------------------

-- What is chosen in a cell for `epilogue` (nil: without any); nil: nothing.
local function chosen_in(cell, epilogue)
  if cell.default then return { strategy = cell.default, epilogue = "separate" } end
  if cell.fusion and not epilogue then return cell.plain end
  return cell.best
end

-- The group of a cell in `groups`, which it is new to where there is none.
local function group_of(groups, cell, epilogue)
  for _, found in ipairs(groups) do
    if found.op == cell.op and found.world_size == cell.world_size and found.dtype == cell.dtype
      and found.epilogue == epilogue and found.splits == cell.splits then return found end
  end
  local made = { op = cell.op, world_size = cell.world_size, dtype = cell.dtype, splits = cell.splits,
    epilogue = epilogue, sizes = {}, chosen = {} }
  groups[#groups + 1] = made
  return made
end

-- Neighbours with one answer are one range; between two sizes the border is their geometric mean, rounded
-- down.
local function add_ranges(found)
  local borders, last = choice_lookup.borders(found.sizes), nil
  found.ranges = {}
  for i, chosen in ipairs(found.chosen) do
    local is_same = last and last.strategy == chosen.strategy
      and (not found.epilogue or last.epilogue == chosen.epilogue)
    if not is_same then
      last = { strategy = chosen.strategy, epilogue = chosen.epilogue }
      table.insert(found.ranges, last)
    end
    last.largest = i < #found.sizes and borders[i] or false
  end
end

-- op, TP, dtype -> { { largest bytes (false: any), strategy }... } of plain calls; `of_pairs`: those of an
-- allreduce with its epilogue, which say how that is done, too.
local function ranges_of(job, of_pairs)
  local groups = {}
  for _, cell in ipairs(job.cells) do
    local epilogue = of_pairs and cell.fusion or nil
    local chosen = (epilogue or not of_pairs) and chosen_in(cell, epilogue)
    if chosen then
      local found = group_of(groups, cell, epilogue)
      table.insert(found.sizes, cell.size)
      table.insert(found.chosen, chosen)
    end
  end
  for _, found in ipairs(groups) do add_ranges(found) end
  return groups
end

local function python(job)
  local render = template.load(gentables.home .. "/templates/tune/tuned.py.tmpl")
  return render { groups = ranges_of(job), pair_groups = ranges_of(job, true), default = job.default,
    lists = lists }
end

-- ---- rows -------------------------------------------------------------------------------------

-- Whose rows these are, as a sweep says it; and of plug-ins what they were.
local function provenance_of(job, world_size, records)
  local plugins = json.array {}
  for _, candidate in ipairs(job.candidates) do
    if candidate.plugin and candidate.usual then
      local name = tune_rows.name(job, candidate.name)
      plugins[#plugins + 1] = { strategy = name, parameters = candidate.parameters }
    end
  end
  local limits = { min_samples = job.samples, max_samples = job.samples, cell_us = 0 }
  return { world_size = world_size, arch = job.arch, machine = job.machine, bench = job.identity,
    fingerprint = provenance.fingerprint(job.machine, { bench = job.identity, plugins = job.libraries },
      limits, job.launcher),
    launches = job.launches, placement = records[1].placement, date = os.date("!%Y-%m-%dT%H:%M:%SZ"),
    plugins = #plugins > 0 and { libraries = job.libraries, candidates = plugins } or nil, no_time = {} }
end

local function rows_path(job, folder, world_size)
  return ("%s/benchmark.tp%d.%s.csv"):format(folder, world_size, job.arch)
end

local function write_rows(job, folder, world_size)
  local records = tune_rows.records(job, world_size)
  if #records == 0 then return end
  merge.write(job, rows_path(job, folder, world_size), records, provenance_of(job, world_size, records))
end

local function put(path, text)
  local written, message = file.write(path, text)
  if not written then fail.work("%s", message) end
end

-- Looks at what is in `folder` before anything is measured: rows of another machine raise, and the choices of
-- a table there stay within noise, as `gentables generate` has it.
function write.prepare(job, folder)
  for _, world_size in ipairs(job.launches > 1 and job.worlds or {}) do
    merge.read(job, rows_path(job, folder, world_size))
  end
  local path = folder .. "/table.csv"
  local stays, arch
  if file.exists(path) then stays, arch = tables.read(path) end
  job.stays = stays and arch == job.arch and stays or nil
end

-- Writes all files into `folder`.
function write.all(job, folder)
  fail.unless(file.make_folder(folder))
  put(folder .. "/tuned.json", write.json(job) .. "\n")
  put(folder .. "/gentables_tuned.py", python(job))
  for _, world_size in ipairs(job.launches > 1 and job.worlds or {}) do
    write_rows(job, folder, world_size)
  end
end

return write
