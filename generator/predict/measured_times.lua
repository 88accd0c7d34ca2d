-- The measured times of a source from which larger numbers of nodes are predicted: by number of ranks on each
-- node, block, shape and strategy, the times on two and more nodes. One node is another regime: its ranks
-- share memory.
local at = require("base.sequences").at
local fit = require "predict.fit"
local lists = require "lists.lists"
local sorted_keys = require("base.ordering").sorted_keys

local measured_times = {}

local NAMES = { "hidden_size", "num_tokens", "strategy", "placement", "time_us", "low_us", "high_us" }

-- The law of other operations is unknown, and uneven shares have no law.
local function has_law(slice)
  return slice.nodes > 1 and slice.op == "allreduce" and not slice.sizes_only
    and (slice.splits or "") == ""
end

local function keep_faster(by_nodes, row)
  local old = by_nodes[row.nodes]
  if not old or row.time_us < old.time_us then by_nodes[row.nodes] = row end
end

-- Enters the rows of a slice; of repeated rows the fastest.
local function enter(plane, slice, columns, loopback)
  for i = 1, columns.count do
    local row = { nodes = slice.nodes, time_us = columns.time_us[i], placement = columns.placement[i],
      low_us = columns.low_us[i] or nil, high_us = columns.high_us[i] or nil }
    row.error = fit.error_of(row)
    if loopback or row.placement ~= "loopback" then
      local shape = at(at(plane.shapes, columns.hidden_size[i]), columns.num_tokens[i])
      keep_faster(at(shape, columns.strategy[i]), row)
      keep_faster(at(plane.small, columns.strategy[i]), row)
    end
  end
end

-- The measured planes of a source (of model.load), in order: { { ranks_per_node, dtype, op, mode, fusion,
-- counts = ascending numbers of nodes, shapes = hidden size -> tokens -> strategy -> nodes -> { nodes,
-- time_us, low_us, high_us, error, placement }, small = strategy -> nodes -> that of the shape with the least
-- time }... }. Computed once.
function measured_times.planes(source)
  if source.predict_planes then return source.predict_planes end
  local by_key, out = {}, {}
  for _, slice in ipairs(source.rows:slices()) do
    if has_law(slice) then
      local ranks_per_node = slice.world_size // slice.nodes
      local key = ("%05d %s %s %s %s"):format(ranks_per_node, slice.dtype, slice.op, slice.mode, slice.fusion)
      local plane = by_key[key] or { ranks_per_node = ranks_per_node, dtype = slice.dtype, op = slice.op,
        mode = slice.mode, fusion = slice.fusion, counts = {}, shapes = {}, small = {} }
      by_key[key] = plane
      plane.counts[#plane.counts + 1] = slice.nodes
      enter(plane, slice, source.rows:slice(slice, NAMES), source.loopback)
    end
  end
  for i, key in ipairs(sorted_keys(by_key)) do
    table.sort(by_key[key].counts)
    out[i] = by_key[key]
  end
  source.predict_planes = out
  return out
end

-- Calls use(shape) for each shape of a plane, in order: { hidden_size, num_tokens, bytes, strategies =
-- strategy -> nodes -> time }.
function measured_times.each_shape(plane, use)
  local element_bytes = lists.find("dtypes", plane.dtype).bytes
  for _, hidden_size in ipairs(sorted_keys(plane.shapes)) do
    for _, num_tokens in ipairs(sorted_keys(plane.shapes[hidden_size])) do
      use { hidden_size = hidden_size, num_tokens = num_tokens,
        bytes = hidden_size * num_tokens * element_bytes,
        strategies = plane.shapes[hidden_size][num_tokens] }
    end
  end
end

-- The points of one strategy at one shape at numbers of nodes below `below`, ascending.
function measured_times.list(by_nodes, counts, below)
  local out = {}
  for _, nodes in ipairs(counts) do
    if nodes < below and by_nodes[nodes] then out[#out + 1] = by_nodes[nodes] end
  end
  return out
end

return measured_times
