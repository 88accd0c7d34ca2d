-- A Chrome trace with one event for each measured collective of NCCL, size and data type, from which
-- PyTorch's Inductor estimates the times of collectives (profile_guided_estimations_profile_path). The times
-- are those of NCCL's own calls, which PyTorch makes, not those of the best strategy: the file changes the
-- order in which Inductor schedules collectives and computation, never how a collective is done.
--
-- inductor_profile.text(view): the file. .view(source) gives { series, groups }: series, the events of one
-- collective, data type and number of ranks, { name, kernel, ranks, dtype, elements_in, elements_out,
-- times_us = lists, ascending by size }...; groups = the numbers of ranks, ascending.
local core_text = require "core.text"
local facts = require("frameworks.reader_facts").inductor
local lists = require "lists.lists"
local ordering = require "base.ordering"
local sequences = require "base.sequences"
local sizes_of = require "core.sizes"

local inductor_profile = {}

local STRATEGY = "NCCL"

-- The slices of plain collectives on one node that the file can hold: those of the spec's mode or, where
-- there is none, of rows without a mode.
local function slices_of(source)
  local found, of_key = {}, {}
  for _, slice in ipairs(source.rows:slices()) do
    local is_plain = slice.fusion == "NONE" and slice.nodes == 1 and (slice.splits or "") == ""
    local has_mode = slice.mode == source.axes.mode
    if is_plain and facts.ops[slice.op] and (has_mode or slice.mode == "unknown") then
      local key = ("%d %s %s"):format(slice.world_size, slice.op, slice.dtype)
      local at = of_key[key] or #found + 1
      if has_mode or not of_key[key] then found[at], of_key[key] = slice, at end
    end
  end
  return found
end

-- The events of a slice; nil: it has none.
local function series_of(source, slice)
  local op, bytes = facts.ops[slice.op], lists.find("dtypes", slice.dtype).bytes
  local sizes, times = sizes_of.medians(source.rows, slice, STRATEGY)
  local series = { name = op.name, kernel = op.kernel, ranks = slice.world_size,
    dtype = facts.dtypes[slice.dtype], elements_in = {}, elements_out = {}, times_us = {} }
  for i, size in ipairs(sizes) do
    local elements = size // bytes
    local share = elements // slice.world_size
    local elements_out = op.output == "whole" and elements or share
    if elements_out > 0 then
      local at = #series.times_us + 1
      series.elements_in[at] = op.input == "whole" and elements or share
      series.elements_out[at], series.times_us[at] = elements_out, times[i]
    end
  end
  return #series.times_us > 0 and series or nil
end

local views = setmetatable({}, { __mode = "k" }) -- by source

local function view_of(source)
  local all = sequences.map(slices_of(source), function(slice) return series_of(source, slice) end)
  ordering.sort(all, ordering.by("ranks", "name", "dtype"))
  return { series = all, groups = sequences.distinct(sequences.field(all, "ranks")) }
end

function inductor_profile.view(source)
  views[source] = views[source] or view_of(source)
  return views[source]
end

function inductor_profile.lacks(source)
  if #inductor_profile.view(source).series > 0 then return nil end
  return "no row of NCCL without a fusion, on one node; its times are those of the calls that PyTorch makes"
end

-- ---- the file ---------------------------------------------------------------------------------

local function ranks_text(count)
  local ranks = {}
  for rank = 0, count - 1 do ranks[#ranks + 1] = rank end
  return "[" .. table.concat(ranks, ", ") .. "]"
end

-- The text of the events of a series, of which the first one starts at `ts`; and the end of the last one.
local function events_text(series, ts)
  local starts = { decimals = 4 }
  for i, time_us in ipairs(series.times_us) do starts[i], ts = ts, ts + time_us end
  local args = '"Collective name": "%s", "Process Group Name": "%d", "Process Group Ranks": "%s", ' ..
    '"Group size": %d, "In msg nelems": '
  local pieces = {
    ('    {"ph": "X", "cat": "kernel", "name": "%s", "pid": 0, "tid": 7, "ts": '):format(series.kernel),
    ', "dur": ',
    ',\n      "args": {' .. args:format(series.name, series.ranks, ranks_text(series.ranks), series.ranks),
    ', "Out msg nelems": ', (', "dtype": "%s"}}'):format(series.dtype) }
  local columns = { starts, series.times_us, series.elements_in, series.elements_out }
  return core_text.rows(pieces, columns, ",\n"), ts
end

-- Events follow each other, so that other readers of traces take the file too.
function inductor_profile.text(view)
  local groups = sequences.map(view.groups, function(count)
    return ('{"pg_name": "%d", "pg_desc": "undefined", "ranks": %s}'):format(count, ranks_text(count))
  end)
  local parts, ts = { '{\n  "gentables": {"format": "PyTorch profile-guided estimates", "version": 1},\n' ..
    '  "schemaVersion": 1,\n' ..
    ('  "distributedInfo": {"backend": "nccl", "rank": 0, "world_size": %d, "pg_config": [\n    %s]},\n')
      :format(view.groups[#view.groups], table.concat(groups, ",\n    ")) .. '  "traceEvents": [\n' }, 0.0
  for i, series in ipairs(view.series) do
    parts[2 * i], ts = events_text(series, ts)
    parts[2 * i + 1] = i < #view.series and ",\n" or "\n  ]\n}\n"
  end
  return core_text.concat(parts)
end

-- What the trace cannot express, as lines.
function inductor_profile.gaps()
  return {
    "choices: it has times of NCCL alone, for the order of collectives and computation",
    "groups of ranks that do not follow each other: PyTorch estimates these by its own formulas",
    "broadcasts and uneven all-to-alls, several nodes, graphs apart from eager calls: they are left out",
    "between two sizes PyTorch interpolates, below the smallest its time counts, and above twice the " ..
      "largest the bandwidth of the largest",
  }
end

return inductor_profile
