-- The choice at one shape on more nodes than were measured: the library's own decision, or a strategy that is
-- faster even at the lower bound of its predicted gain.
local fit = require "predict.fit"
local growth = require "predict.growth"
local lists = require "lists.lists"
local measured_times = require "predict.measured_times"

local sure_gains = {}

-- The largest number of nodes, as a multiple of the largest measured one, for which times are predicted.
sure_gains.FARTHEST = 4

-- The laws of a strategy at a size; {} if it never wins.
local function laws_of(name, bytes)
  return lists.may_win(name) and growth.of(lists.find("strategies", name), bytes) or {}
end

-- The predictions at `nodes` of the strategies at a shape (of measured_times.each_shape) that have times at
-- `fewest` numbers of nodes below `below`: strategy -> { log_time, error, placement }; and those that follow
-- no law: strategy -> true.
function sure_gains.predictions(plane, shape, below, fewest, nodes)
  local predictions, kinks = {}, {}
  for name, by_nodes in pairs(shape.strategies) do
    local list, laws = measured_times.list(by_nodes, plane.counts, below), laws_of(name, shape.bytes)
    if #list >= fewest and #laws > 0 then
      local prediction = fit.predict(list, laws, { nodes = nodes, ranks_per_node = plane.ranks_per_node,
        small = measured_times.list(plane.small[name], plane.counts, below) })
      predictions[name], kinks[name] = prediction, not prediction or nil
      if prediction then prediction.placement = list[#list].placement end
    end
  end
  return predictions, kinks
end

-- The strategies that may be chosen: the library's own decision and those that are surely faster; {} without
-- a prediction of the library's. strategy -> prediction
function sure_gains.allowed(predictions, library)
  local own, out = predictions[library], {}
  for name, prediction in pairs(own and predictions or {}) do
    if name == library or fit.is_surely_faster(prediction, own) then out[name] = prediction end
  end
  return out
end

return sure_gains
