-- The data of TensorRT-LLM's header customAllReduceUtils.h: the tables of all SM versions of a folder.
-- Renders nothing.
--
-- trtllm.view(source, format) gives { tables, most }; a table, ascending by `sm`:
--   sm, axes, name       the number; { dtype, op, mode }; AllReduceBestStrategyTableSM{sm}
--   tp_tables            as in model.lua, with `fusions` in the enum's order: { name, rows }, rows nil where
--                        none was measured
--   thresholds           { tp, num_tokens (from which NCCL wins), elements (from which TWOSHOT does) }, each
--                        nil if never; for TP sizes with measured ONESHOT or TWOSHOT
--   by_tokens            { tp, fusions = { { index from 0, rows = { { hidden_size, steps } } } } }; a step is
--                        { from = tokens, strategy = number }: the fewest within what may be lost
--                        (choose/borders.c)
--   by_bytes             { tp, fusions = { { index, steps } } }: the same over all hidden sizes, from = bytes
-- most: the most values that any table has along each axis.
local lists = require "lists.lists"
local model = require "formats.model"
local by_bytes = require "sizes.by_bytes"
local fail = require "base.fail"
local ordering = require "base.ordering"
local sequences = require "base.sequences"

local trtllm = {}

-- The TP size with every fusion of TensorRT-LLM's table, measured or not.
local function with_all_fusions(tp_table)
  local by_name, fusions = {}, {}
  for _, fusion in ipairs(tp_table.fusions) do by_name[fusion.name] = fusion end
  for i, fusion in ipairs(lists.trtllm_fusions()) do
    fusions[i] = { name = fusion.name, rows = by_name[fusion.name] and by_name[fusion.name].rows }
  end
  return { tp = tp_table.tp, mode = tp_table.mode, hidden_sizes = tp_table.hidden_sizes,
    num_tokens = tp_table.num_tokens,
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
local function nccl_from(tp_table)
  local rows, from = tp_table.fusions[1].rows, nil
  for t = #tp_table.num_tokens, 1, -1 do
    for _, row in ipairs(rows or {}) do
      if row[t] and not is_nccl(row[t]) then return from end
    end
    from = tp_table.num_tokens[t]
  end
  return from
end

-- The thresholds of each TP size at which ONESHOT or TWOSHOT was measured.
local function thresholds_of(part, tp_tables)
  local out, tp_table_of = {}, {}
  for _, tp_table in ipairs(tp_tables) do tp_table_of[tp_table.tp] = tp_table end
  local one_or_two = by_bytes.tp_tables(part, function(strategy)
    return strategy.name == "ONESHOT" or strategy.name == "TWOSHOT"
  end)
  local bytes = lists.find("dtypes", part.axes.dtype).bytes
  for _, measured in ipairs(one_or_two) do
    local border, tp_table = border_of(measured.points), tp_table_of[measured.tp]
    if tp_table then
      out[#out + 1] = { tp = measured.tp, num_tokens = nccl_from(tp_table),
        elements = border and border // bytes }
    end
  end
  return out
end

-- ---- the fewest thresholds --------------------------------------------------------------------

local function number_of(strategy) return strategy and strategy.trtllm end

-- A row's thresholds; -1 is the strategy of unmeasured cells.
local function steps_of_row(tp_table, segments)
  return sequences.map(segments, function(segment, i)
    local strategy = lists.strategies[segment.strategy]
    return { from = i > 1 and tp_table.num_tokens[segment.first] or 0,
      strategy = number_of(strategy) or -1 }
  end)
end

local function by_tokens(view)
  local out = {}
  for i, tp_table in ipairs(view.tp_tables) do
    out[i] = { tp = tp_table.tp, fusions = {} }
    for f, fusion in ipairs(tp_table.fusions) do
      local rows = sequences.map(tp_table.hidden_sizes, function(hidden_size, h)
        return { hidden_size = hidden_size,
          steps = steps_of_row(tp_table, view.canonical:segments(tp_table.block, f, h)) }
      end)
      local index = lists.find("fusions", fusion.name).trtllm
      if index then table.insert(out[i].fusions, { index = index, rows = rows }) end
    end
  end
  return out
end

local function tp_tables_by_bytes(part)
  local out, of_tp = {}, {}
  for _, fusion in ipairs(lists.trtllm_fusions()) do
    local function may_win(strategy) return strategy.trtllm ~= nil end
    for _, tp_table in ipairs(by_bytes.tp_tables(part, may_win, fusion.name)) do
      local steps = sequences.map(tp_table.segments, function(segment)
        return { from = segment.first, strategy = number_of(segment.strategy) }
      end)
      local of = sequences.entry(out, of_tp, tp_table.tp, function()
        return { tp = tp_table.tp, fusions = {} }
      end)
      table.insert(of.fusions, { index = fusion.trtllm, steps = steps })
    end
  end
  return ordering.sort(out, ordering.by "tp")
end

local function table_of(part, format)
  local view, tp_tables = model.for_format(part, format), {}
  for i, tp_table in ipairs(view.tp_tables) do tp_tables[i] = with_all_fusions(tp_table) end
  local sm = math.tointeger(part.arch:match("^sm(%d+)$"))
  return { sm = sm, axes = view.axes, tp_tables = tp_tables, name = "AllReduceBestStrategyTableSM" .. sm,
    thresholds = thresholds_of(part, tp_tables), by_tokens = by_tokens(view),
    by_bytes = tp_tables_by_bytes(part), data_dir = part.data_dir }
end

local function widen(most, made)
  most.tp = math.max(most.tp, #made.tp_tables)
  for _, tp_table in ipairs(made.tp_tables) do
    most.hidden_sizes = math.max(most.hidden_sizes, #tp_table.hidden_sizes)
    most.num_tokens = math.max(most.num_tokens, #tp_table.num_tokens)
  end
end

-- The strategy outside of the table, as in today's TensorRT-LLM: NCCL_SYMMETRIC, that of earlier versions,
-- hangs without symmetric memory.
local FALLBACK = "NCCL"

function trtllm.view(source, format)
  local view = { tables = {}, most = { tp = 0, hidden_sizes = 0, num_tokens = 0 },
    fusions = lists.trtllm_fusions(), fallback = FALLBACK }
  for _, part in ipairs(source.parts) do
    local made = table_of(part, format)
    if #made.tp_tables > 0 then
      table.insert(view.tables, made)
      widen(view.most, made)
    end
  end
  if #view.tables == 0 then
    fail.input("%s: no row for %s: its tables are of ranks on one node, by tokens and hidden size",
      source.data_dir, format.file)
  end
  return view
end

return trtllm
