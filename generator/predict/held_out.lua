-- How good predictions of a source's rows are: the largest measured number of nodes is predicted from the
-- smaller ones, and the choices are compared with its rows.
--
-- Rows are noisy. So there are two losses of a choice, as in gentables regret: of the times, and the certain
-- one, by the ends of their intervals.
local sure_gains = require "predict.sure_gains"
local fit = require "predict.fit"
local measured_times = require "predict.measured_times"
local predictions = require "predict.predictions"
local rank_placement = require "lists.rank_placement"

local held_out = {}

-- The strategy that a table would have at a shape: of those that may be chosen the one with the least time.
local function chosen_of(allowed, library)
  local best = library
  for name, prediction in pairs(allowed) do
    local other = allowed[best]
    if prediction.log_time < other.log_time or prediction.log_time == other.log_time and name < best then
      best = name
    end
  end
  return best
end

-- Counts the rows at the largest number of nodes that lie in the intervals of their predictions.
local function count_inside(result, predicted, strategies)
  for name, prediction in pairs(predicted) do
    local row = strategies[name][result.nodes]
    if row then
      local low_us, high_us = fit.interval(prediction)
      result.predicted = result.predicted + 1
      if row.time_us >= low_us and row.time_us <= high_us then result.inside = result.inside + 1 end
    end
  end
end

-- The loss of a row against the fastest of a shape at `nodes`, and the certain loss.
local function losses_of(row, strategies, nodes)
  local least, certain = row.time_us, row.low_us or row.time_us
  local own = certain
  for _, by_nodes in pairs(strategies) do
    local other = by_nodes[nodes]
    if other then
      least, certain = math.min(least, other.time_us), math.min(certain, other.high_us or other.time_us)
    end
  end
  return row.time_us / least - 1, own / certain - 1
end

-- Judges the choice at a shape that has a row of the library's own decision.
local function judge(result, plane, shape, library)
  local strategies, nodes = shape.strategies, result.nodes
  local own = strategies[library] and strategies[library][nodes]
  if not own then return end
  local predicted = sure_gains.predictions(plane, shape, nodes, predictions.FEWEST - 1, nodes)
  local row = strategies[chosen_of(sure_gains.allowed(predicted, library), library)][nodes] or own
  local loss, certain = losses_of(row, strategies, nodes)
  result.shapes = result.shapes + 1
  result.mean, result.certain = result.mean + loss, result.certain + certain
  result.library = result.library + losses_of(own, strategies, nodes)
  if loss > result.worst then
    result.worst = loss
    result.where = ("%s %s, %d x %d"):format(plane.dtype, plane.fusion, shape.num_tokens, shape.hidden_size)
  end
  count_inside(result, predicted, strategies)
end

-- The result for the ranks on each node of a plane, if its largest number of nodes is the largest one.
local function result_of(results, plane)
  local nodes, result = plane.counts[#plane.counts], results[plane.ranks_per_node]
  if result and nodes <= result.nodes then return nodes == result.nodes and result or nil end
  result = { nodes = nodes, ranks_per_node = plane.ranks_per_node, shapes = 0, mean = 0, certain = 0,
    library = 0, worst = -1, predicted = 0, inside = 0,
    from = table.move(plane.counts, 1, #plane.counts - 1, 1, {}) }
  results[plane.ranks_per_node] = result
  return result
end

-- The judgements of a source (of model.load), by ranks on each node: { { nodes, ranks_per_node, from = the
-- other numbers of nodes, shapes, mean, certain, worst = losses of the choices as shares of the least time,
-- where = the shape of the worst, library = the mean loss of the library's own decision, predicted =
-- predicted times that have a row, inside = those of them with a row in the interval }... }. `from_bytes`:
-- only of messages of at least so many bytes.
function held_out.of_source(source, from_bytes)
  local results, out = {}, {}
  for _, plane in ipairs(measured_times.planes(source)) do
    local result = #plane.counts >= predictions.FEWEST and result_of(results, plane)
    if result then
      measured_times.each_shape(plane, function(shape)
        if shape.bytes >= (from_bytes or 0) then judge(result, plane, shape, source.arch_row.fallback) end
      end)
    end
  end
  for _, result in pairs(results) do
    for _, name in ipairs { "mean", "certain", "library" } do
      result[name] = result[name] / math.max(1, result.shapes)
    end
    if result.shapes > 0 then out[#out + 1] = result end
  end
  table.sort(out, function(a, b) return a.ranks_per_node < b.ranks_per_node end)
  return out
end

-- A judgement as text.
function held_out.words(result)
  return ("held out: %s predicted from %s nodes: mean regret %.1f %% (certain: %.1f %%) over %d shapes, at "
    .. "worst %.1f %% at %s; the library's own decision: %.1f %%; %d of %d times lie in their 95 %% "
    .. "intervals"):format(rank_placement.words(result.nodes * result.ranks_per_node, result.nodes),
    table.concat(result.from, ", "), 100 * result.mean, 100 * result.certain, result.shapes,
    100 * result.worst, result.where, 100 * result.library, result.inside, result.predicted)
end

return held_out
