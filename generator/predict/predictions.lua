-- The predicted times of a source on the numbers of nodes in `predict` of its spec, and the choices that they
-- allow. Where nothing can be predicted, there is no choice, and readers use the library's own decision.
local sure_gains = require "predict.sure_gains"
local fit = require "predict.fit"
local measured_times = require "predict.measured_times"
local quantities = require "base.quantities"
local rank_placement = require "lists.rank_placement"
local sequences = require "base.sequences"
local sorted_keys = require("base.ordering").sorted_keys

local predictions = {}

-- The fewest measured numbers of nodes, from two nodes on, from which another is predicted.
predictions.FEWEST = 3

local MOST_RANKS = 65535 -- of a cell

-- The numbers of nodes to predict that are possible for a plane, and the reasons against the others.
local function counts_of(plane, wanted)
  local out, reasons, largest = {}, {}, plane.counts[#plane.counts]
  for _, nodes in ipairs(wanted) do
    local ranks = nodes * plane.ranks_per_node
    if #plane.counts < predictions.FEWEST then
      reasons[#reasons + 1] = ("%d nodes with %s on each: rows of %d numbers of nodes from 2 on are "
        .. "required, and there are %d"):format(nodes, quantities.counted(plane.ranks_per_node, "rank"),
        predictions.FEWEST, #plane.counts)
    elseif nodes > sure_gains.FARTHEST * largest or ranks > MOST_RANKS then
      reasons[#reasons + 1] = ("%d nodes with %s on each: more than %d times the largest measured "
        .. "number of nodes, %d"):format(nodes, quantities.counted(plane.ranks_per_node, "rank"),
        sure_gains.FARTHEST, largest)
    elseif nodes > largest then
      out[#out + 1] = nodes
    end
  end
  return out, reasons
end

-- A record of a predicted time, as derive.lua has records of derived ones.
local function record_of(block, shape, strategy, prediction)
  local low_us, high_us = fit.interval(prediction)
  return { world_size = block.world_size, nodes = block.nodes, dtype = block.dtype, op = block.op,
    mode = block.mode, fusion = block.fusion, hidden_size = shape.hidden_size, num_tokens = shape.num_tokens,
    strategy = strategy, placement = prediction.placement, time_us = math.exp(prediction.log_time),
    low_us = low_us, high_us = high_us, predicted = true }
end

-- Adds the records and the block of a plane at `nodes`.
local function add(found, plane, nodes, library)
  local block = { world_size = nodes * plane.ranks_per_node, nodes = nodes, dtype = plane.dtype,
    op = plane.op, mode = plane.mode, fusion = plane.fusion, fusions = { plane.fusion }, shapes = 0,
    without = 0, kinks = 0 }
  local hidden_sizes, num_tokens = {}, {}
  measured_times.each_shape(plane, function(shape)
    local predicted, kinks = sure_gains.predictions(plane, shape, math.huge, predictions.FEWEST, nodes)
    local allowed = sure_gains.allowed(predicted, library)
    hidden_sizes[shape.hidden_size], num_tokens[shape.num_tokens] = true, true
    block.shapes = block.shapes + 1
    block.without = block.without + (next(allowed) and 0 or 1)
    for _ in pairs(kinks) do block.kinks = block.kinks + 1 end
    for _, name in ipairs(sorted_keys(allowed)) do
      table.insert(found.times, record_of(block, shape, name, allowed[name]))
    end
  end)
  block.hidden_sizes, block.num_tokens = sorted_keys(hidden_sizes), sorted_keys(num_tokens)
  table.insert(found.blocks, block)
end

-- The predictions of a source (of model.load), computed once: { times = { { world_size, nodes, dtype, op,
-- mode, fusion, hidden_size, num_tokens, strategy, placement, time_us, low_us, high_us, predicted = true }...
-- } of the strategies that may be chosen, blocks = { { world_size, nodes, dtype, op, mode, fusion, fusions,
-- hidden_sizes, num_tokens, shapes, without = shapes without a choice, kinks = times that follow no law }...
-- }, refused = { texts } }. Nil if the spec predicts nothing.
function predictions.of_source(source)
  local wanted = source.spec and source.spec.predict
  if not wanted or source.predictions then return source.predictions end
  local found, seen = { times = {}, blocks = {}, refused = {} }, {}
  local planes = measured_times.planes(source)
  for _, plane in ipairs(planes) do
    local counts, reasons = counts_of(plane, wanted)
    for _, nodes in ipairs(counts) do add(found, plane, nodes, source.arch_row.fallback) end
    for _, reason in ipairs(reasons) do
      if not seen[reason] then seen[reason], found.refused[#found.refused + 1] = true, reason end
    end
  end
  if #planes == 0 then found.refused[1] = "no row is of an allreduce on several nodes" end
  table.sort(found.blocks, rank_placement.before)
  source.predictions = found
  return found
end

-- The predicted times of a source, and the numbers of nodes that have some, ascending; {} and {} without.
function predictions.times(source)
  local found = predictions.of_source(source)
  return found and found.times or {}
end

function predictions.node_counts(source)
  return sorted_keys(sequences.set(sequences.field(predictions.times(source), "nodes")))
end

return predictions
