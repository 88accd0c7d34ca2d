-- Limits for readers that try their ways in a fixed order, each up to a size or within a range, so that not
-- every series of choices can be expressed. A way is what a reader has a name for: one or several strategies.
-- The limits are those that lose least; the rest is a miss, which the files and reports list.
local by_bytes = require "sizes.by_bytes"
local lookup_rule = require "core.lookup_rule"
local ordering = require "base.ordering"
local quantities = require "base.quantities"
local sequences = require "base.sequences"

local reader_limits = {}

local UNTIMED = 1e6 -- the loss of a way without a time, as a share of the best one: more than a measured one

-- The largest size that a file of limits names; beyond it is no message.
reader_limits.NEVER = 1 << 62

-- The tables (of sizes.by_bytes) of these numbers of ranks that have one, each with the strategies of its
-- ways: way_on(ranks) -> function, name of a strategy -> way.
function reader_limits.tables(source, worlds, way_on, fusion)
  return sequences.map(worlds, function(tp)
    local way_of = way_on(tp)
    local function may_win(strategy) return way_of(strategy.name) ~= nil end
    return sequences.find(by_bytes.tp_tables(source, may_win, fusion), function(of) return of.tp == tp end)
  end)
end

-- The points of a table (of sizes.by_bytes) for ways: { { size, losses = { way -> the least loss of its
-- strategies } }... }. way_of(name of a strategy) -> way, or nil.
function reader_limits.points(tp_table, way_of)
  return sequences.map(tp_table.points, function(point)
    local losses = {}
    for name, loss in pairs(point.badness) do
      local way = way_of(name)
      if way then losses[way] = math.min(losses[way] or math.huge, loss) end
    end
    return { size = point.size, losses = losses }
  end)
end

-- Whether any point has a time of a way.
function reader_limits.has_time(points, way)
  return sequences.any(points, function(point) return point.losses[way] ~= nil end)
end

local function loss_in(point, state)
  if state.is_off then return math.huge end
  local is_above = state.most and point.size > state.most
  return point.losses[is_above and state.beyond or state.way] or UNTIMED
end

-- The cheapest way to a state at a point: its cost, and the state at the point before.
local function cheapest_before(states, costs, index, regret)
  local least, from = costs[index], index
  for _, earlier in ipairs(states[index].after) do
    if costs[earlier] + regret < least then least, from = costs[earlier] + regret, earlier end
  end
  return least, from
end

-- The state of each point with the least total loss. points: ascending; states: the ways of a reader in the
-- order in which they can follow each other, { way, after = indices of states that may precede, is_off, most
-- = the largest size of it (nil: any), beyond = the way above that }. A change of the state that gains less
-- than `regret` is noise.
function reader_limits.cheapest(points, states, regret)
  local costs, from = {}, {}
  for p, point in ipairs(points) do
    local now = {}
    from[p] = {}
    for i, state in ipairs(states) do
      local before = 0
      if p > 1 then before, from[p][i] = cheapest_before(states, costs, i, regret) end
      now[i] = before + loss_in(point, state)
    end
    costs = now
  end
  local chosen, last = {}, 1
  for i in ipairs(costs) do
    if costs[i] < costs[last] then last = i end
  end
  for p = #points, 1, -1 do chosen[p], last = last, from[p][last] end
  return chosen
end

-- The range { first, last } of the sizes of points with one of these states, which follow each other; nil:
-- no point has one. The border between two sizes is that of the tables; the last range ends with the largest
-- measured size.
function reader_limits.range_of(tp_table, points, chosen, ...)
  local wanted, first, last = sequences.set { ... }, nil, nil
  for p in ipairs(points) do
    if wanted[chosen[p]] then first, last = first or p, p end
  end
  if not first then return nil end
  return { first = first > 1 and lookup_rule.border(points[first - 1].size, points[first].size) + 1 or 0,
    last = last < #points and lookup_rule.border(points[last].size, points[last + 1].size)
      or math.max(points[last].size, tp_table.measured.last or 0) }
end

-- The parts of a segment between which a reader may answer differently: { first, last (nil: no end) }. cuts:
-- sizes after which an answer may change.
local function parts_of(segment, cuts)
  local parts, first = {}, segment.first
  for _, cut in ipairs(cuts) do
    if cut >= first and cut < (segment.last or math.huge) then
      parts[#parts + 1], first = { first = first, last = cut }, cut + 1
    end
  end
  parts[#parts + 1] = { first = first, last = segment.last }
  return parts
end

-- The index of the first point of at least this size; one above all if there is none.
local function first_from(points, size)
  local low, high = 1, #points + 1
  while low < high do
    local middle = (low + high) // 2
    if points[middle].size < size then low = middle + 1 else high = middle end
  end
  return low
end

-- The mean and the largest loss of `answered` beside `chosen` over the points of a part; nil: no point has a
-- time of both.
local function loss_over(points, part, chosen, answered)
  local sum, most, count = 0, 0, 0
  local p = first_from(points, part.first)
  while points[p] and points[p].size <= (part.last or math.huge) do
    local mine, other = points[p].losses[chosen], points[p].losses[answered]
    if mine and other then
      local loss = (1 + other) / (1 + mine) - 1
      sum, most, count = sum + loss, math.max(most, loss), count + 1
    end
    p = p + 1
  end
  if count > 0 then return sum / count, most end
end

-- The sizes at which a reader does not answer the choice of a table: { { first, last (nil: no end), chosen,
-- answered = ways, mean, most = loss (nil: unknown) }... }. `step`: the reader has no other sizes than its
-- multiples.
function reader_limits.misses(tp_table, way_of, answer, cuts, step)
  local points, misses = reader_limits.points(tp_table, way_of), {}
  cuts = ordering.sort(sequences.distinct(cuts))
  for _, segment in ipairs(tp_table.segments) do
    for _, part in ipairs(parts_of(segment, cuts)) do
      local size = math.max((part.first + step - 1) // step, 1) * step
      local chosen, answered = way_of(segment.strategy.name), answer(size)
      if size <= (part.last or math.huge) and chosen ~= answered then
        local mean, most = loss_over(points, part, chosen, answered)
        misses[#misses + 1] = { first = part.first, last = part.last, chosen = chosen, answered = answered,
          mean = mean, most = most }
      end
    end
  end
  return misses
end

local MOST_LINES = 8

-- A miss as a line for people; `where`: the ranks, and more.
local function miss_in_words(miss, where)
  local range = miss.last and ("%s to %s"):format(quantities.bytes(miss.first), quantities.bytes(miss.last))
    or "from " .. quantities.bytes(miss.first) .. " on"
  local cost = miss.mean and ("; mean loss %.1f %%, at most %.1f %%"):format(100 * miss.mean, 100 * miss.most)
    or "; the loss was not measured"
  return ("%s, %s: its file answers %s, and the choice is %s%s"):format(where, range, miss.answered,
    miss.chosen, cost)
end

-- The misses of one place as lines for people: those that lose most, and how many more there are.
function reader_limits.misses_in_words(misses, where)
  local by_loss = sequences.join { misses }
  table.sort(by_loss, function(a, b)
    if a.most ~= b.most then return (a.most or math.huge) > (b.most or math.huge) end
    return a.first < b.first
  end)
  local lines = {}
  for i = 1, math.min(#by_loss, MOST_LINES) do lines[i] = miss_in_words(by_loss[i], where) end
  if #by_loss > MOST_LINES then
    lines[#lines + 1] = ("%s: and %d more ranges of sizes, which lose less; GAPS in the file has all"):format(
      where, #by_loss - MOST_LINES)
  end
  return lines
end

return reader_limits
