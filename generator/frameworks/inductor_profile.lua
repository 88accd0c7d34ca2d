-- A Chrome trace with one event for each measured collective of NCCL, size and data type, from which
-- PyTorch's Inductor estimates the times of collectives (profile_guided_estimations_profile_path). The times
-- are those of NCCL's own calls, which PyTorch makes, not those of the best strategy: the file changes the
-- order in which Inductor schedules collectives and computation, never how a collective is done.
--
-- inductor_profile.text(view): the file. .view(source) gives { events, groups }: events { name, kernel,
-- ranks, dtype, elements_in, elements_out, time_us }..., groups = the numbers of ranks, ascending.
local facts = require("frameworks.reader_facts").inductor
local json = require "codec.json"
local lists = require "lists.lists"
local ordering = require "base.ordering"
local sequences = require "base.sequences"
local statistics = require "base.statistics"

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

-- size in bytes -> the times of NCCL's calls of a slice
local function times_of(source, slice)
  local columns = source.rows:slice(slice, { "size", "strategy", "placement", "time_us" })
  local times = {}
  for i = 1, columns.count do
    if columns.strategy[i] == STRATEGY and columns.placement[i] ~= "loopback" then
      local size = columns.size[i]
      times[size] = times[size] or {}
      table.insert(times[size], columns.time_us[i])
    end
  end
  return times
end

local function event_of(slice, size, times)
  local op, elements = facts.ops[slice.op], size // lists.find("dtypes", slice.dtype).bytes
  local shares = { whole = elements, share = elements // slice.world_size }
  table.sort(times)
  return { name = op.name, kernel = op.kernel, ranks = slice.world_size, dtype = facts.dtypes[slice.dtype],
    elements_in = shares[op.input], elements_out = shares[op.output], time_us = statistics.median(times) }
end

local views = setmetatable({}, { __mode = "k" }) -- by source

local function view_of(source)
  local events = {}
  for _, slice in ipairs(slices_of(source)) do
    local times = times_of(source, slice)
    for _, size in ipairs(ordering.sorted_keys(times)) do
      local event = event_of(slice, size, times[size])
      if event.elements_out > 0 then events[#events + 1] = event end
    end
  end
  ordering.sort(events, ordering.by("ranks", "name", "dtype", "elements_out"))
  return { events = events, groups = sequences.distinct(sequences.field(events, "ranks")) }
end

function inductor_profile.view(source)
  views[source] = views[source] or view_of(source)
  return views[source]
end

function inductor_profile.lacks(source)
  if #inductor_profile.view(source).events > 0 then return nil end
  return "no row of NCCL without a fusion, on one node; its times are those of the calls that PyTorch makes"
end

-- ---- the file ---------------------------------------------------------------------------------

local function ranks_text(count)
  local ranks = {}
  for rank = 0, count - 1 do ranks[#ranks + 1] = rank end
  return "[" .. table.concat(ranks, ", ") .. "]"
end

-- Events follow each other, so that other readers of traces take the file too.
local function event_text(event, ts)
  local args = ('"Collective name": "%s", "Process Group Name": "%d", "Process Group Ranks": "%s", ' ..
    '"Group size": %d, "In msg nelems": %d, "Out msg nelems": %d, "dtype": "%s"'):format(event.name,
    event.ranks, ranks_text(event.ranks), event.ranks, event.elements_in, event.elements_out, event.dtype)
  return ('    {"ph": "X", "cat": "kernel", "name": "%s", "pid": 0, "tid": 7, "ts": %.4f, "dur": %s,\n' ..
    '      "args": {%s}}'):format(event.kernel, ts, json.compact(event.time_us), args)
end

function inductor_profile.text(view)
  local events, ts = {}, 0
  for i, event in ipairs(view.events) do
    events[i], ts = event_text(event, ts), ts + event.time_us
  end
  local groups = sequences.map(view.groups, function(count)
    return ('{"pg_name": "%d", "pg_desc": "undefined", "ranks": %s}'):format(count, ranks_text(count))
  end)
  return table.concat({ "{", '  "gentables": {"format": "PyTorch profile-guided estimates", "version": 1},',
    '  "schemaVersion": 1,',
    ('  "distributedInfo": {"backend": "nccl", "rank": 0, "world_size": %d, "pg_config": [\n    %s]},')
      :format(view.groups[#view.groups], table.concat(groups, ",\n    ")),
    '  "traceEvents": [', table.concat(events, ",\n") }, "\n") .. "\n  ]\n}\n"
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
