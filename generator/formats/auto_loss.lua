-- The loss of AUTO, which is the call through the incumbent's lookup, the cost of the lookup included. AUTO
-- is measured beside the strategies and never chosen; its loss against the best choice is what a new table
-- could save.
local lists = require "lists.lists"
local rank_placement = require "lists.rank_placement"
local sequences = require "base.sequences"

local auto_loss = {}

local NAME = "AUTO"

-- The times of a slice by its cells: { { hidden_size =, num_tokens =, auto_us =, best_us = }... }, in order.
local function cells_of(slice, may_win)
  local cells, by_shape = {}, {}
  for i = 1, slice.count do
    local shape = ("%d %d"):format(slice.hidden_size[i], slice.num_tokens[i])
    local cell = sequences.entry(cells, by_shape, shape, function()
      return { hidden_size = slice.hidden_size[i], num_tokens = slice.num_tokens[i] }
    end)
    if slice.strategy[i] == NAME then
      cell.auto_us = slice.time_us[i]
    elseif may_win[slice.strategy[i]] then
      cell.best_us = math.min(cell.best_us or math.huge, slice.time_us[i])
    end
  end
  return cells
end

local function candidates(names)
  local may_win = {}
  for _, strategy in ipairs(lists.strategies) do
    may_win[strategy.name] = strategy.candidate ~= false and (not names or names(strategy))
  end
  return may_win
end

-- The loss of AUTO in rows (core.rows) against the best of the strategies that may win and are in the set
-- `names` (nil: all): { cells =, captured = (the number of cells in a graph), mean =, worst =, where = (the
-- cell of the worst, as text) }; nil if no cell has both.
function auto_loss.over(rows, names)
  if not rows:strategies()[NAME] then return nil end
  local may_win, sum, count, worst, where, captured = candidates(names), 0, 0, 0, nil, 0
  for _, key in ipairs(rows:slices()) do
    for _, cell in ipairs(cells_of(rows:slice(key), may_win)) do
      local ratio = cell.auto_us and cell.best_us and cell.auto_us / cell.best_us
      if ratio then
        sum, count = sum + math.log(ratio), count + 1
        if key.mode:find("graph") then captured = captured + 1 end
        if ratio > worst then
          worst = ratio
          where = ("%s %s, hidden size %d, %d token%s"):format(
            rank_placement.words(key.world_size, key.nodes), key.fusion, cell.hidden_size,
            cell.num_tokens, cell.num_tokens == 1 and "" or "s")
        end
      end
    end
  end
  return count > 0 and { cells = count, captured = captured, mean = math.exp(sum / count), worst = worst,
    where = where } or nil
end

-- The same as a line for people; nil if no cell has both.
function auto_loss.line(rows, names)
  local found = auto_loss.over(rows, names)
  if not found then return nil end
  local line = ("AUTO, the call through the incumbent's lookup, took %.2f times the best strategy's time " ..
    "(geometric mean of %d cell%s), at most %.2f times (%s)"):format(found.mean, found.cells,
    found.cells == 1 and "" or "s", found.worst, found.where)
  if found.captured == 0 then return line end
  local which = found.captured == found.cells and "its calls" or ("those of %d cells"):format(found.captured)
  return ("%s; %s go into a graph with what the lookup chose, and pay for it once, when that is captured")
    :format(line, which)
end

return auto_loss
