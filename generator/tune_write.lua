-- What `gentables tune` leaves: tuned.json, gentables_tuned.py (templates/tune), and, of several launches,
-- rows
-- for tables.
local choice_lookup = require "lookup"
local fail = require "fail"
local file = require "core.file"
local json = require "json"
local lists = require "lists"
local provenance = require "provenance"
local rows = require "core.rows"
local template = require "template"

local write = {}

local function entry_json(entry)
  return json.object { { "strategy", entry.strategy }, { "epilogue", entry.epilogue },
    { "time_us", entry.time_us }, { "low_us", entry.low_us }, { "high_us", entry.high_us },
    { "launches_us", json.array(entry.launches) }, { "min_us", entry.first.min_us },
    { "mean_of_max_us", entry.first.mean_of_max_us }, { "max_of_means_us", entry.first.max_of_means_us },
    { "mean_us", entry.first.mean_us }, { "skew_us", entry.first.skew_us },
    { "bound_us", entry.first.bound_us }, { "accumulate", entry.first.accumulate },
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
    { "epilogue", cell.best and cell.best.epilogue }, { "is_default", cell.default ~= nil },
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

-- op, TP, dtype -> { { largest bytes (false: any), strategy }... }: neighbours with one winner are one range;
-- between two sizes the border is their geometric mean, rounded down.
local function ranges_of(job)
  local groups, order = {}, {}
  for _, cell in ipairs(job.cells) do
    local strategy = cell.best and cell.best.strategy or cell.default
    local key = ("%s %d %s %s"):format(cell.op, cell.world_size, cell.dtype, cell.splits or "")
    local found = groups[key]
    if strategy and not found then
      found = { op = cell.op, world_size = cell.world_size, dtype = cell.dtype, splits = cell.splits,
        sizes = {}, strategies = {} }
      groups[key], order[#order + 1] = found, found
    end
    if strategy then
      table.insert(found.sizes, cell.size)
      table.insert(found.strategies, strategy)
    end
  end
  for _, found in ipairs(order) do
    local borders = choice_lookup.borders(found.sizes)
    found.ranges = {}
    for i, strategy in ipairs(found.strategies) do
      local last = found.ranges[#found.ranges]
      if not last or last.strategy ~= strategy then
        last = { strategy = strategy }
        table.insert(found.ranges, last)
      end
      last.largest = i < #found.sizes and borders[i] or false
    end
  end
  return order
end

local function python(job)
  local render = template.load(gentables.home .. "/templates/tune/tuned.py.tmpl")
  return render { groups = ranges_of(job), default = job.default, lists = lists }
end

-- ---- rows -------------------------------------------------------------------------------------

-- How rows and tables name a candidate.
local function row_name(job, name)
  return (job.candidates[name].plugin and lists.plugin_prefix or "") .. name
end

-- The entries of a cell that are rows: each candidate without an epilogue, and with it fused, or where it has
-- no such thing, in a pass of its own.
local function entries_of(cell)
  local by_kind, entries = {}, {}
  for _, entry in ipairs(cell.ranked) do by_kind[entry.strategy .. " " .. entry.epilogue] = entry end
  for _, entry in ipairs(cell.ranked) do
    local has_better = entry.epilogue == "separate" and by_kind[entry.strategy .. " fused"]
    if not has_better then entries[#entries + 1] = entry end
  end
  return entries, by_kind
end

local function record_of(job, cell, entry, by_kind)
  local first = entry.first
  local separate = entry.epilogue == "fused" and by_kind[entry.strategy .. " separate"]
  local has_epilogue = entry.epilogue == "fused" or entry.epilogue == "separate"
  local alone = has_epilogue and by_kind[entry.strategy .. " alone"]
  return { world_size = cell.world_size, dtype = cell.dtype, size = cell.size,
    op = cell.op, num_tokens = cell.num_tokens, hidden_size = cell.num_tokens and cell.hidden_size,
    strategy = row_name(job, entry.strategy), fusion = has_epilogue and cell.fusion or "NONE",
    time_us = entry.time_us, low_us = entry.low_us, high_us = entry.high_us, samples = first.samples,
    min_us = first.min_us, p95_us = first.p95_us, p99_us = first.p99_us, skew_us = first.skew_us,
    bound_us = first.bound_us, floor_us = first.floor_us, calls = first.calls,
    mode = "eager", accumulate = first.accumulate, placement = first.placement,
    launches = entry.launches, splits = cell.splits,
    separate_us = separate and separate.time_us or nil, alone_us = alone and alone.time_us or nil }
end

-- The rows of one number of ranks.
local function records_of(job, world_size)
  local records = {}
  for _, cell in ipairs(job.cells) do
    if cell.world_size == world_size then
      local entries, by_kind = entries_of(cell)
      for _, entry in ipairs(entries) do
        records[#records + 1] = record_of(job, cell, entry, by_kind)
      end
    end
  end
  return records
end

-- Whose rows these are, as a sweep says it; and of plug-ins what they were.
local function provenance_of(job, world_size, records)
  local plugins = json.array {}
  for _, candidate in ipairs(job.candidates) do
    if candidate.plugin and candidate.usual then
      plugins[#plugins + 1] = { strategy = row_name(job, candidate.name), parameters = candidate.parameters }
    end
  end
  local limits = { min_samples = job.samples, max_samples = job.samples, cell_us = 0 }
  return { world_size = world_size, arch = job.arch, machine = job.machine, bench = job.identity,
    fingerprint = provenance.fingerprint(job.machine, { bench = job.identity, plugins = job.libraries },
      limits, job.launcher),
    launches = job.launches, placement = records[1].placement, date = os.date("!%Y-%m-%dT%H:%M:%SZ"),
    plugins = #plugins > 0 and { libraries = job.libraries, candidates = plugins } or nil, no_time = {} }
end

local function write_rows(job, folder, world_size)
  local records = records_of(job, world_size)
  local path = ("%s/benchmark.tp%d.%s.csv"):format(folder, world_size, job.arch)
  if #records == 0 then return end
  local text = fail.unless(rows.text(path, records))
  local written, message = provenance.write(path, text, provenance_of(job, world_size, records))
  if not written then fail.work("%s", message) end
end

local function put(path, text)
  local written, message = file.write(path, text)
  if not written then fail.work("%s", message) end
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
