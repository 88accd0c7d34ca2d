-- tuned.json: the times and choices of `gentables tune`, by cell. A new document keeps the cells of an older
-- one of the same machine that were not measured again, so that one file can have all ops.
local fail = require "base.fail"
local file = require "core.file"
local json = require "codec.json"
local lists = require "lists.lists"
local machines = require "machine.machines"
local provenance = require "rows.provenance"
local sequences = require "base.sequences"
local splits = require "lists.splits"

local document = {}

local VERSION = 2

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

local function cell_json(job, cell)
  local candidates = json.array(sequences.map(cell.ranked, entry_json))
  local without = json.array(sequences.map(cell.no_time, function(entry)
    return json.object { { "strategy", entry.strategy }, { "reason", entry.reason } }
  end))
  local ranks, op = cell.world_size, lists.find("ops", cell.op)
  local algbw = cell.best and cell.size / cell.best.time_us / 1000
  return json.object { { "op", cell.op }, { "world_size", ranks },
    { "nodes", job.nodes > 1 and job.nodes or nil }, { "dtype", cell.dtype },
    { "size", cell.size }, { "splits", cell.splits }, { "fusion", cell.fusion },
    { "num_tokens", cell.num_tokens }, { "hidden_size", cell.fusion and cell.hidden_size or nil },
    { "strategy", cell.best and cell.best.strategy or cell.default },
    { "epilogue", cell.best and cell.best.epilogue },
    { "plain_strategy", cell.plain and cell.plain.strategy }, { "is_default", cell.default ~= nil },
    { "reason", cell.default and cell.reason },
    { "launches", job.launches },
    { "runner_up", cell.runner_up and cell.runner_up.strategy }, { "margin", cell.margin },
    { "sure", cell.best and cell.state == "certain" }, { "state", cell.state },
    { "confidence", cell.confidence }, { "algbw_GBps", algbw },
    { "busbw_GBps", algbw and algbw * op.bus_factor(ranks) },
    { "candidates", candidates }, { "no_time", without } }
end

local function whole(of, cells, excluded)
  local launches
  for _, cell in ipairs(cells) do launches = math.min(launches or cell.launches, cell.launches) end
  return json.object { { "version", VERSION }, { "arch", of.arch }, { "machine", of.machine },
    { "default", of.default }, { "launches", launches or of.launches },
    { "single_launch", (launches or of.launches) == 1 },
    { "excluded", next(excluded) and excluded or json.object {} }, { "cells", cells } }
end

-- All of a job.
function document.of(job)
  local cells = sequences.map(job.cells, function(cell) return cell_json(job, cell) end)
  return whole(job, json.array(cells), sequences.merged(job.excluded))
end

-- ---- reading ----------------------------------------------------------------------------------

-- Names become code: gentables_tuned.py has them in quotes.
local function is_name(value) return type(value) == "string" and value:find("^[%w_]+$") ~= nil end
local function is_whole(value) return math.type(value) == "integer" and value > 0 end
local function is_list(value)
  return type(value) == "table" and getmetatable(value) ~= getmetatable(json.null)
end

local epilogues = { none = true, fused = true, separate = true, alone = true }

-- A candidate's name and time become code, too.
local function is_candidate(value)
  if not is_list(value) or not is_name(value.strategy) then return false end
  local time = value.time_us
  local has_time = type(time) == "number" and time > 0 and time < math.huge
  return (time == nil or has_time) and (value.epilogue == nil or epilogues[value.epilogue] == true)
end

local function are_candidates(value)
  if not is_list(value) then return false end
  for at, candidate in pairs(value) do
    if type(at) ~= "number" or not is_candidate(candidate) then return false end
  end
  return true
end

-- The checks of a cell's fields; those in `optional` may be missing.
local required = { op = function(value) return lists.has("ops", value) end,
  dtype = function(value) return lists.has("dtypes", value) end, world_size = is_whole, size = is_whole,
  strategy = is_name, launches = is_whole, candidates = are_candidates, no_time = is_list,
  is_default = function(value) return type(value) == "boolean" end }
local optional = { splits = function(value) return type(value) == "string" and splits.read(value) end,
  fusion = function(value) return lists.has("fusions", value) end,
  nodes = is_whole, hidden_size = is_whole, num_tokens = is_whole, plain_strategy = is_name,
  epilogue = function(value) return epilogues[value] end }

-- The ways of an epilogue that a choice with a fusion may have.
local ways = { fused = true, separate = true }

local function is_cell(value)
  if not is_list(value) then return false end
  for name, check in pairs(required) do
    if not check(value[name]) then return false end
  end
  for name, check in pairs(optional) do
    if value[name] ~= nil and not check(value[name]) then return false end
  end
  return not value.fusion or value.is_default or ways[value.epilogue] == true
end

-- Whether a value has the form of the documents that this module writes.
local function is_document(value)
  local is_form = is_list(value) and value.version == VERSION and is_list(value.machine)
    and is_list(value.cells) and is_list(value.excluded) and type(value.arch) == "string"
    and is_name(value.default) and is_whole(value.launches)
  if not is_form or provenance.wrong_machine(value.machine) then return false end
  for name, reason in pairs(value.excluded) do
    if type(name) ~= "string" or type(reason) ~= "string" then return false end
  end
  for at, cell in pairs(value.cells) do
    if type(at) ~= "number" or not is_cell(cell) then return false end
  end
  return true
end

-- The document at `path`; nil without a file. Raises if it is damaged, or of another version, machine or
-- arch.
function document.read(path, job)
  if not file.exists(path) then return nil end
  local found = json.decode(fail.unless(file.read(path)))
  if not is_document(found) then
    fail.input("%s: is not of this version of gentables, or damaged; remove it, or use another --out", path)
  end
  local is_ours = found.arch == job.arch and machines.same(found.machine, job.machine)
  if not is_ours then
    fail.input("%s: is of %s (%s), and this is %s (%s); another --out is required", path,
      machines.describe(found.machine), found.arch, machines.describe(job.machine), job.arch)
  end
  return found
end

-- ---- joining ----------------------------------------------------------------------------------

local function key_of(cell)
  return table.concat({ cell.op, cell.world_size, cell.nodes or 1, cell.dtype, cell.size, cell.splits or "",
    cell.fusion or "", cell.hidden_size or "" }, " ")
end

-- The names of the ops of cells, each once.
local function ops_of(cells) return table.concat(sequences.distinct(sequences.field(cells, "op")), ", ") end

-- The document of `now` and of the cells of `before` that stay, and a text about both. `libraries`: the paths
-- of plug-ins that answered now, which are not excluded any more.
function document.join(now, before, libraries)
  local is_new = sequences.set(sequences.map(now.cells, key_of))
  local stay = sequences.filter(before.cells, function(cell) return not is_new[key_of(cell)] end)
  local cells = json.array(sequences.join { now.cells, stay })
  local excluded = sequences.merged(before.excluded, now.excluded)
  for _, cell in ipairs(now.cells) do -- a candidate that has run now is not excluded any more
    for _, candidate in ipairs(cell.candidates) do
      if not now.excluded[candidate.strategy] then excluded[candidate.strategy] = nil end
    end
  end
  local words = ("cells measured now: %d of %s, %d of them in place of older ones; kept: %d%s"):format(
    #now.cells, ops_of(now.cells), #before.cells - #stay, #stay, #stay > 0 and " of " .. ops_of(stay) or "")
  for _, path in ipairs(libraries) do excluded[path] = nil end
  if not now.machine.fabric then now.machine = machines.over(now.machine, before.machine.fabric) end
  return whole(now, cells, excluded), words
end

return document
