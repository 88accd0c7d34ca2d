-- The data of TensorRT-LLM's header customAllReduceUtils.h: the tables of all SM versions of a folder.
-- Renders nothing.
--
-- trtllm.view(source, format) gives { tables, most }; a table, ascending by `sm`:
--   sm, axes, name       the number; { dtype, op, mode }; AllReduceBestStrategyTableSM{sm}
--   worlds               as in model.lua, with `fusions` in the enum's order: { name, rows }, rows nil where
--                        none was measured
--   thresholds           { tp, num_tokens, elements }: see `threshold_of`
--   by_tokens            { tp, fusions = { { index from 0, rows = { { hidden_size, steps } } } } }; a step is
--                        { from = tokens, strategy = number }: the fewest within what may be lost
--                        (choose/borders.c)
--   by_bytes             { tp, fusions = { { index, steps } } }: the same over all hidden sizes, from = bytes
-- most: the most values that any table has along each axis.
local lists = require "lists.lists"
local model = require "formats.model"
local by_bytes = require "choose.by_bytes"

local trtllm = {}

-- The fusions in the order of their numbers.
function trtllm.fusions()
  local fusions = {}
  for _, fusion in ipairs(lists.fusions) do
    if fusion.trtllm then fusions[fusion.trtllm + 1] = fusion end
  end
  return fusions
end

-- The TP size with every fusion of TensorRT-LLM's table, measured or not.
local function with_all_fusions(world)
  local by_name, fusions = {}, {}
  for _, fusion in ipairs(world.fusions) do by_name[fusion.name] = fusion end
  for i, fusion in ipairs(trtllm.fusions()) do
    fusions[i] = { name = fusion.name, rows = by_name[fusion.name] and by_name[fusion.name].rows }
  end
  return { tp = world.tp, mode = world.mode, hidden_sizes = world.hidden_sizes, num_tokens = world.num_tokens,
    fusions = fusions }
end

-- The number of bytes from which TWOSHOT is used, and below which ONESHOT is: the border with the least total
-- badness; nil: never TWOSHOT.
local function border_of(points)
  local best, best_cost
  for border = 1, #points + 1 do
    local cost = 0
    for i, point in ipairs(points) do
      cost = cost + (point.badness[i < border and "ONESHOT" or "TWOSHOT"] or 1)
    end
    if not best or cost < best_cost then best, best_cost = border, cost end
  end
  return points[best] and points[best].size
end

local function is_nccl(strategy) return strategy and (strategy.trtllm == 0 or strategy.trtllm == 8) end

-- The token count from which NCCL wins at every measured hidden size; nil: never.
local function nccl_from(world)
  local rows, from = world.fusions[1].rows, nil
  for t = #world.num_tokens, 1, -1 do
    for _, row in ipairs(rows or {}) do
      if row[t] and not is_nccl(row[t]) then return from end
    end
    from = world.num_tokens[t]
  end
  return from
end

-- The thresholds of each TP size at which ONESHOT or TWOSHOT was measured.
local function thresholds_of(part, worlds)
  local out, world_of = {}, {}
  for _, world in ipairs(worlds) do world_of[world.tp] = world end
  local one_or_two = by_bytes.worlds(part, function(strategy)
    return strategy.name == "ONESHOT" or strategy.name == "TWOSHOT"
  end)
  local bytes = lists.find("dtypes", part.axes.dtype).bytes
  for _, measured in ipairs(one_or_two) do
    local border, world = border_of(measured.points), world_of[measured.tp]
    if world then
      out[#out + 1] = { tp = measured.tp, num_tokens = nccl_from(world),
        elements = border and border // bytes }
    end
  end
  return out
end

-- ---- the fewest thresholds --------------------------------------------------------------------

local function number_of(strategy) return strategy and strategy.trtllm end

-- A row's thresholds; -1 is the strategy of unmeasured cells.
local function steps_of_row(world, segments)
  local steps = {}
  for i, segment in ipairs(segments) do
    local strategy = lists.strategies[segment.strategy]
    steps[i] = { from = i > 1 and world.num_tokens[segment.first] or 0, strategy = number_of(strategy) or -1 }
  end
  return steps
end

local function by_tokens(view)
  local out = {}
  for i, world in ipairs(view.worlds) do
    out[i] = { tp = world.tp, fusions = {} }
    for f, fusion in ipairs(world.fusions) do
      local rows = {}
      for h, hidden_size in ipairs(world.hidden_sizes) do
        rows[h] = { hidden_size = hidden_size,
          steps = steps_of_row(world, view.canonical:segments(world.block, f, h)) }
      end
      local index = lists.find("fusions", fusion.name).trtllm
      if index then table.insert(out[i].fusions, { index = index, rows = rows }) end
    end
  end
  return out
end

local function worlds_by_bytes(part)
  local out, of_tp = {}, {}
  for _, fusion in ipairs(trtllm.fusions()) do
    local function may_win(strategy) return strategy.trtllm ~= nil end
    for _, world in ipairs(by_bytes.worlds(part, may_win, fusion.name)) do
      local steps = {}
      for i, segment in ipairs(world.segments) do
        steps[i] = { from = segment.first, strategy = number_of(segment.strategy) }
      end
      if not of_tp[world.tp] then
        of_tp[world.tp] = { tp = world.tp, fusions = {} }
        out[#out + 1] = of_tp[world.tp]
      end
      table.insert(of_tp[world.tp].fusions, { index = fusion.trtllm, steps = steps })
    end
  end
  table.sort(out, function(a, b) return a.tp < b.tp end)
  return out
end

local function table_of(part, format)
  local view, worlds = model.for_format(part, format), {}
  for i, world in ipairs(view.worlds) do worlds[i] = with_all_fusions(world) end
  local sm = math.tointeger(part.arch:match("^sm(%d+)$"))
  return { sm = sm, axes = view.axes, worlds = worlds, name = "AllReduceBestStrategyTableSM" .. sm,
    thresholds = thresholds_of(part, worlds), by_tokens = by_tokens(view), by_bytes = worlds_by_bytes(part),
    data_dir = part.data_dir }
end

local function widen(most, made)
  most.tp = math.max(most.tp, #made.worlds)
  for _, world in ipairs(made.worlds) do
    most.hidden_sizes = math.max(most.hidden_sizes, #world.hidden_sizes)
    most.num_tokens = math.max(most.num_tokens, #world.num_tokens)
  end
end

function trtllm.view(source, format)
  local view = { tables = {}, most = { tp = 0, hidden_sizes = 0, num_tokens = 0 }, fusions = trtllm.fusions(),
    fallback = lists.arch("sm90").fallback }
  for _, part in ipairs(source.parts) do
    local made = table_of(part, format)
    if #made.worlds > 0 then
      table.insert(view.tables, made)
      widen(view.most, made)
    end
  end
  return view
end

return trtllm
