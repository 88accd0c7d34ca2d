-- Choices by message size, for readers that have no shapes (NCCL, Open MPI, MPICH, thresholds). It renders
-- nothing.
--
-- by_bytes.tp_tables(source, may_win, fusion, nodes, mode) gives, per TP size: { tp, mode, sizes, points,
-- segments, measured, predicted }; of the rows of `fusion` (nil: NONE, the plain sums) of source.axes, on
-- `nodes` nodes (nil: one), of `mode` (nil: that of the axes).
--   sizes     the points in C, with their choices; see sizes_lua.c
--   points    ascending { size, badness = { strategy -> expected loss } }
--   measured  { first, last = bytes }: the smallest and the largest size with a measured time or, of a
--             `predicted` table, with a predicted one
--   predicted whether all times were predicted from other numbers of nodes
--   segments  ascending { first, last = bytes, both inclusive, strategy = row of lists.strategies }; the
--             first starts at 0, the last has no `last`
--
-- The rule is that of tables by shape (select.c); its losses are those of size_points.c: shapes of equal
-- bytes have equal weight. Times that a sweep left out count as in tables by shape (derive.lua); a shape that
-- has no other times counts only if its size has no other shape. If numerics are stable, a slice has only
-- strategies of one class: the class of most cells in the table source.stable_as, or, without such a table,
-- the class that loses least. The segments are the fewest with a loss of at most source.regret (default:
-- by_bytes.REGRET) at each size. A strategy without a time for some shape of a size is not chosen there.
-- Between two sizes the border is that of core.lookup_rule.
local choices = require "core.choose"
local derive = require "base.lazy" "choose.derive"
local lists = require "lists.lists"
local lookup_rule = require "core.lookup_rule"
local ordering = require "base.ordering"
local predictions = require "base.lazy" "predict.predictions"
local sequences = require "base.sequences"
local sizes = require "core.sizes"

local by_bytes = {}

by_bytes.REGRET = 0.02 -- changes of the choice that gain less are taken as noise

-- Whether a derived time belongs to a slice.
local function is_of(slice, time)
  return time.world_size == slice.world_size and (time.nodes or 1) == slice.nodes and
    time.dtype == slice.dtype and time.op == slice.op and time.mode == slice.mode and
    time.fusion == slice.fusion
end

local slices_by_source = setmetatable({}, { __mode = "k" })

-- The slices of the rows of a source, then those of its predictions, { ..., is_predicted = true }; made once.
local function all_slices(source)
  if slices_by_source[source] then return slices_by_source[source] end
  local slices, found = source.rows:slices(), predictions.of_source(source)
  for _, block in ipairs(found and found.blocks or {}) do
    slices[#slices + 1] = { world_size = block.world_size, nodes = block.nodes, dtype = block.dtype,
      op = block.op, mode = block.mode, fusion = block.fusion, sizes_only = false, is_predicted = true }
  end
  slices_by_source[source] = slices
  return slices
end

-- The slice of each TP size on `nodes` nodes that has the axes; rows of other tools, which have no mode, or
-- sizes only, are used if there is none.
local function find_slices(source, fusion, nodes, mode)
  local found = {}
  for _, slice in ipairs(all_slices(source)) do
    local axes = source.axes
    local has_axes = slice.dtype == axes.dtype and slice.op == axes.op and slice.fusion == fusion
    if has_axes and slice.nodes == nodes then
      local other = found[slice.world_size]
      local has_mode = slice.mode == mode
      local is_better = not other or has_mode and (other.mode ~= mode or not slice.sizes_only)
      if is_better and (has_mode or slice.mode == "unknown") then found[slice.world_size] = slice end
    end
  end
  local ordered = {}
  for _, slice in pairs(found) do ordered[#ordered + 1] = slice end
  return ordering.sort(ordered, ordering.by "world_size")
end

-- The times of a slice that are not in rows: predicted ones, which count as measured ones do elsewhere, or
-- else those that a sweep left out.
local function other_times_of(source, slice)
  if slice.is_predicted then return predictions.times(source), true end
  return derive.of_source(source), false
end

-- The other times that count, for core.sizes.
local function others_of(source, slice)
  local bytes, others = lists.find("dtypes", slice.dtype).bytes, {}
  local times, are_measured = other_times_of(source, slice)
  for _, time in ipairs(times) do
    if is_of(slice, time) and (source.loopback or time.placement ~= "loopback") then
      others[#others + 1] = { num_tokens = time.num_tokens, hidden_size = time.hidden_size,
        size = time.num_tokens * time.hidden_size * bytes, strategy = time.strategy, time_us = time.time_us,
        is_measured = are_measured }
    end
  end
  return others
end

local function times_of(source, slice)
  local is_in_rows = not slice.is_predicted
  return sizes.times(source.rows, is_in_rows and slice or nil, others_of(source, slice), source.loopback)
end

local function points_of(source, slice, allowed, times)
  return times:points(source.rows, slice, { may_win = allowed, loopback = source.loopback })
end

local function segments_of(points, chosen)
  local segments = {}
  for i, point in ipairs(points) do
    local open = segments[#segments]
    if not open or open.strategy.name ~= chosen[i] then
      if open then open.last = lookup_rule.border(points[i - 1].size, point.size) end
      segments[#segments + 1] = { first = open and open.last + 1 or 0, points = {},
        strategy = lists.find("strategies", chosen[i]) }
    end
    table.insert(segments[#segments].points, point)
  end
  return segments
end

-- The segments of ascending points { size, badness }, each with its points, with a loss of at most `regret`.
function by_bytes.segments(points, regret)
  return segments_of(points, choices.along(points, regret or by_bytes.REGRET))
end

-- The regret of a source's choices.
function by_bytes.regret(source) return source.regret or by_bytes.REGRET end

-- The strategies that may win a slice: name -> true. If numerics matter, only those with the required bits.
local function winners_of(source, slice, may_win)
  local allowed = {}
  for _, strategy in ipairs(lists.strategies) do
    allowed[strategy.name] = strategy.candidate ~= false and may_win(strategy) or nil
  end
  if not source.same_bits_as then return allowed end
  local options = { first = source.same_bits_as, loopback = source.loopback }
  local class, same = choices.classes(source.rows, slice, options)[1], {}
  if class and class.names[1] == source.same_bits_as then
    for _, name in ipairs(class.names) do same[name] = allowed[name] end
  else
    same[source.same_bits_as] = allowed[source.same_bits_as]
  end
  return same
end

-- name -> the number of cells of a slice in which a table chooses that strategy
local function cells_of(chosen, slice)
  local counts = {}
  for b, block in ipairs(chosen:blocks()) do
    local is_of_slice = block.world_size == slice.world_size and block.nodes == slice.nodes
      and block.dtype == slice.dtype and block.op == slice.op and block.mode == slice.mode
    for f, fusion in ipairs(is_of_slice and block.fusions or {}) do
      for h = 1, fusion == slice.fusion and #block.hidden_sizes or 0 do
        for _, strategy in ipairs(chosen:winners(b, f, h)) do
          local row = lists.strategies[strategy] -- nil: unmeasured
          if row then counts[row.name] = (counts[row.name] or 0) + 1 end
        end
      end
    end
  end
  return counts
end

-- The classes of equal bits that have strategies in `allowed`: { { allowed = name -> true, cells = how many
-- choices of source.stable_as they have }... }.
local function classes_of(source, slice, allowed)
  local found, _, unknown, varying = choices.classes(source.rows, slice, { loopback = source.loopback })
  for _, names in ipairs { unknown, varying } do
    for _, name in ipairs(names) do found[#found + 1] = { names = { name } } end
  end
  local cells, classes = cells_of(source.stable_as, slice), {}
  for _, class in ipairs(found) do
    local own = { allowed = {}, cells = 0 }
    for _, name in ipairs(class.names) do
      own.allowed[name] = allowed[name]
      own.cells = own.cells + (cells[name] or 0)
    end
    if next(own.allowed) then classes[#classes + 1] = own end
  end
  return classes
end

-- The number of points at which a class has no time, and its total loss at the others.
local function losses_of(class, points)
  local without, total = 0, 0
  for _, point in ipairs(points) do
    local least = math.huge
    for name in pairs(class.allowed) do least = math.min(least, point.badness[name] or math.huge) end
    if least == math.huge then without = without + 1 else total = total + least end
  end
  return without, total
end

-- The strategies of `allowed` to which stable numerics restrict a slice; see the head of this file.
local function stable_winners(source, slice, allowed)
  local best
  local classes = classes_of(source, slice, allowed)
  for _, class in ipairs(classes) do
    if class.cells > (best and best.cells or 0) then best = class end
  end
  if best then return best.allowed end
  local points = points_of(source, slice, allowed, times_of(source, slice)):list()
  for _, class in ipairs(classes) do
    class.without, class.total = losses_of(class, points)
    if not best or class.without < best.without
      or class.without == best.without and class.total < best.total then
      best = class
    end
  end
  return best and best.allowed or {}
end

local function key_of(slice)
  return table.concat({ slice.world_size, slice.nodes, slice.dtype, slice.op, slice.mode, slice.fusion,
    slice.splits or "", tostring(slice.sizes_only), tostring(slice.is_predicted) }, " ")
end

local made_by_source = setmetatable({}, { __mode = "k" })

-- The points of a slice with their choices, and the measured sizes; made once for a source and the same
-- competitors, since several formats need them.
local function made_of(source, slice, allowed)
  local made, key = sequences.at(made_by_source, source), key_of(slice)
  if not made[key] then
    local times = times_of(source, slice)
    made[key] = { times = times, has = times:strategies(), by_names = {} }
  end
  local names = {}
  for name in pairs(allowed) do names[#names + 1] = made[key].has[name] and name or nil end
  local competitors = table.concat(ordering.sort(names), " ")
  local found = made[key].by_names[competitors]
  if not found then
    local points = points_of(source, slice, allowed, made[key].times)
    local first, last = points:measured()
    if first then points:choose(by_bytes.regret(source)) end
    found = { sizes = points, measured = { first = first, last = last } }
    made[key].by_names[competitors] = found
  end
  return found
end

-- Lists of a table that few formats need, made when they are first read.
local LISTS = {
  points = function(made) return made.sizes:list() end,
  segments = function(made) return made.sizes:segments(lists.strategies) end,
}

local function with_lists(tp_table, made)
  return setmetatable(tp_table, { __index = function(_, key)
    if LISTS[key] and not made[key] then made[key] = LISTS[key](made) end
    return made[key]
  end })
end

-- See the head of this file. may_win(row of lists.strategies): whether a strategy competes. TP sizes without
-- such strategies are left out.
function by_bytes.tp_tables(source, may_win, fusion, nodes, mode)
  local tp_tables = {}
  for _, slice in ipairs(find_slices(source, fusion or "NONE", nodes or 1, mode or source.axes.mode)) do
    local allowed = winners_of(source, slice, may_win)
    if source.stable then allowed = stable_winners(source, slice, allowed) end
    local made = made_of(source, slice, allowed)
    if made.measured.first then
      tp_tables[#tp_tables + 1] = with_lists({ tp = slice.world_size, mode = slice.mode,
        measured = made.measured, predicted = slice.is_predicted or nil }, made)
    end
  end
  return tp_tables
end

return by_bytes
