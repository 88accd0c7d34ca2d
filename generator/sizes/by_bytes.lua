-- Choices by message size, for readers that have no shapes (NCCL, Open MPI, MPICH, thresholds). It renders
-- nothing.
--
-- by_bytes.tp_tables(source, may_win, fusion, nodes) gives, per TP size: { tp, mode, points, segments,
-- measured, predicted }; of the rows of `fusion` (nil: NONE, the plain sums) of source.axes, on `nodes` nodes
-- (nil: one).
--   points    ascending { size, badness = { strategy -> expected loss } }
--   measured  { first, last = bytes }: the smallest and the largest size with a measured time or, of a
--             `predicted` table, with a predicted one
--   predicted whether all times were predicted from other numbers of nodes
--   segments  ascending { first, last = bytes, both inclusive, strategy = row of lists.strategies, points };
--             the first starts at 0, the last has no `last`
--
-- The rule is that of tables by shape (select.c); its losses are those of core.choose: shapes of equal bytes
-- have equal weight. Times that a sweep left out count as in tables by shape (derive.lua); a shape that has
-- no other times counts only if its size has no other shape. If numerics are stable, a slice has only
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

local by_bytes = {}

by_bytes.REGRET = 0.02 -- changes of the choice that gain less are taken as noise

-- Whether a derived time belongs to a slice.
local function is_of(slice, time)
  return time.world_size == slice.world_size and (time.nodes or 1) == slice.nodes and
    time.dtype == slice.dtype and time.op == slice.op and time.mode == slice.mode and
    time.fusion == slice.fusion
end

-- The slices of the rows of a source, then those of its predictions, { ..., is_predicted = true }.
local function all_slices(source)
  local slices, found = source.rows:slices(), predictions.of_source(source)
  for _, block in ipairs(found and found.blocks or {}) do
    slices[#slices + 1] = { world_size = block.world_size, nodes = block.nodes, dtype = block.dtype,
      op = block.op, mode = block.mode, fusion = block.fusion, sizes_only = false, is_predicted = true }
  end
  return slices
end

-- The slice of each TP size on `nodes` nodes that has the axes; rows of other tools, which have no mode, or
-- sizes only, are used if there is none.
local function find_slices(source, fusion, nodes)
  local found = {}
  for _, slice in ipairs(all_slices(source)) do
    local axes = source.axes
    local has_axes = slice.dtype == axes.dtype and slice.op == axes.op and slice.fusion == fusion
    if has_axes and slice.nodes == nodes then
      local other = found[slice.world_size]
      local has_mode = slice.mode == axes.mode
      local is_better = not other or has_mode and (other.mode ~= axes.mode or not slice.sizes_only)
      if is_better and (has_mode or slice.mode == "unknown") then found[slice.world_size] = slice end
    end
  end
  local ordered = {}
  for _, slice in pairs(found) do ordered[#ordered + 1] = slice end
  return ordering.sort(ordered, ordering.by "world_size")
end

local function add_time(by_size, size, tokens, hidden_size, strategy, time_us, is_measured)
  local of_size, key = by_size[size] or {}, tokens << 32 | hidden_size
  local shape = of_size[key] or { num_tokens = tokens, hidden_size = hidden_size, times = {} }
  by_size[size], of_size[key] = of_size, shape
  shape.times[strategy], shape.is_measured = time_us, shape.is_measured or is_measured
end

-- The times of a slice that are not in rows: predicted ones, which count as measured ones do elsewhere, or
-- else those that a sweep left out.
local function other_times_of(source, slice)
  if slice.is_predicted then return predictions.times(source), true end
  return derive.of_source(source), false
end

-- size -> key -> a shape for choices.losses, with its times of the strategies that may win, and is_measured:
-- whether any of these times was measured.
local function times_of(source, slice, may_win)
  local names = { "num_tokens", "hidden_size", "size", "strategy", "placement", "time_us" }
  local columns = slice.is_predicted and { count = 0 } or source.rows:slice(slice, names)
  local by_size = {}
  local function is_wanted(strategy, placement)
    return may_win[strategy] and (source.loopback or placement ~= "loopback")
  end
  for i = 1, columns.count do
    if is_wanted(columns.strategy[i], columns.placement[i]) then
      add_time(by_size, columns.size[i], columns.num_tokens[i], columns.hidden_size[i], columns.strategy[i],
        columns.time_us[i], true)
    end
  end
  local bytes = lists.find("dtypes", slice.dtype).bytes
  local times, are_measured = other_times_of(source, slice)
  for _, time in ipairs(times) do
    if is_of(slice, time) and is_wanted(time.strategy, time.placement) then
      add_time(by_size, time.num_tokens * time.hidden_size * bytes, time.num_tokens, time.hidden_size,
        time.strategy, time.time_us, are_measured)
    end
  end
  return by_size
end

-- The shapes with a measured time, in their order, and true; all shapes and false if none has one. A shape
-- with interpolated times only is less certain than the measured ones of its size, and may lack strategies
-- that they have.
local function witnesses_of(shapes)
  local all, measured = {}, {}
  for _, key in ipairs(ordering.sorted_keys(shapes)) do
    all[#all + 1] = shapes[key]
    if shapes[key].is_measured then measured[#measured + 1] = shapes[key] end
  end
  return #measured > 0 and measured or all, #measured > 0
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

-- The points of a slice with the times of times_of; and { first, last }, the smallest and the largest size
-- with a measured time.
local function points_of(source, slice, allowed, by_size)
  local points, measured, sizes_with_shapes, are_measured = {}, {}, {}, {}
  local sorted = ordering.sorted_keys(by_size)
  for i, size in ipairs(sorted) do sizes_with_shapes[i], are_measured[i] = witnesses_of(by_size[size]) end
  local losses = choices.losses(source.rows, slice, sizes_with_shapes,
    { may_win = allowed, loopback = source.loopback })
  for i, size in ipairs(sorted) do
    if next(losses[i]) then
      points[#points + 1] = { size = size, badness = losses[i] }
      if are_measured[i] then measured.first, measured.last = measured.first or size, size end
    end
  end
  return points, measured
end

-- The segments of ascending points { size, badness }, with a loss of at most `regret`.
function by_bytes.segments(points, regret)
  return segments_of(points, choices.along(points, regret or by_bytes.REGRET))
end

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
  local points = points_of(source, slice, allowed, times_of(source, slice, allowed))
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

-- The strategies that have times in a slice: name -> true.
local function strategies_in(source, slice)
  local found = {}
  local columns = slice.is_predicted and { count = 0 } or source.rows:slice(slice, { "strategy" })
  for i = 1, columns.count do found[columns.strategy[i]] = true end
  for _, time in ipairs((other_times_of(source, slice))) do
    if is_of(slice, time) then found[time.strategy] = true end
  end
  return found
end

local made_by_source = setmetatable({}, { __mode = "k" })

-- The points of a slice, the measured sizes and the segments; made once for a source and the same
-- competitors, since several formats ask for them.
local function made_of(source, slice, allowed)
  local made, key = made_by_source[source] or {}, key_of(slice)
  made_by_source[source] = made
  made[key] = made[key] or { has = strategies_in(source, slice), by_names = {} }
  local names = {}
  for name in pairs(allowed) do names[#names + 1] = made[key].has[name] and name or nil end
  local competitors = table.concat(ordering.sort(names), " ")
  local found = made[key].by_names[competitors]
  if not found then
    local points, measured = points_of(source, slice, allowed, times_of(source, slice, allowed))
    found = { points = points, measured = measured,
      segments = measured.first and by_bytes.segments(points, source.regret) }
    made[key].by_names[competitors] = found
  end
  return found
end

-- See the head of this file. may_win(row of lists.strategies): whether a strategy competes. TP sizes without
-- such strategies are left out.
function by_bytes.tp_tables(source, may_win, fusion, nodes)
  local tp_tables = {}
  for _, slice in ipairs(find_slices(source, fusion or "NONE", nodes or 1)) do
    local allowed = winners_of(source, slice, may_win)
    if source.stable then allowed = stable_winners(source, slice, allowed) end
    local made = made_of(source, slice, allowed)
    if made.measured.first then
      tp_tables[#tp_tables + 1] = { tp = slice.world_size, mode = slice.mode, points = made.points,
        measured = made.measured, predicted = slice.is_predicted or nil, segments = made.segments }
    end
  end
  return tp_tables
end

return by_bytes
