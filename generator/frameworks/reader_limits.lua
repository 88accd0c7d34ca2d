-- Limits for readers that try their ways in a fixed order, each up to a size or within a range, so that not
-- every series of choices can be expressed. A way is what a reader has a name for: one or several strategies.
-- The limits are those that lose least; the rest is a miss, which the files and reports list.
local ordering = require "base.ordering"
local quantities = require "base.quantities"
local sequences = require "base.sequences"

local reader_limits = {}

local UNTIMED = 1 -- the loss of a way without a time, as a share of the best one

-- The largest size that a file of limits names; beyond it is no message.
reader_limits.NEVER = 1 << 62

-- The points of a table (of choose.by_bytes) for ways: { { size, losses = { way -> the least loss of its
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

-- The ends of the segments of a table, ascending, with 0 for none and without an end for the last one: that
-- ends with the largest measured size.
function reader_limits.ends(tp_table)
  return sequences.join { { 0 }, sequences.map(tp_table.segments, function(segment)
    return segment.last or math.max(segment.first, tp_table.measured.last)
  end) }
end

-- The ends of those segments that have this way, with 0 for none: candidates for the limit of a way.
function reader_limits.ends_of(tp_table, way_of, way)
  local ends = reader_limits.ends(tp_table)
  return sequences.map(ends, function(last, i)
    return (i == 1 or way_of(tp_table.segments[i - 1].strategy.name) == way) and last or nil
  end)
end

-- The combination with the least total loss, the first of equally good ones. candidates: a list of values for
-- each limit; answer(size, limits...) -> way.
function reader_limits.cheapest(points, candidates, answer)
  local best, least, values = nil, math.huge, {}
  local function try(index)
    if index <= #candidates then
      for _, value in ipairs(candidates[index]) do
        values[index] = value
        try(index + 1)
      end
      return
    end
    local total = 0
    for _, point in ipairs(points) do
      total = total + (point.losses[answer(point.size, table.unpack(values))] or UNTIMED)
    end
    if total < least then best, least = { table.unpack(values) }, total end
  end
  try(1)
  return table.unpack(best)
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

-- The mean and the largest loss of `answered` beside `chosen` over the points of a part; nil: no point has a
-- time of both.
local function loss_over(points, part, chosen, answered)
  local sum, most, count = 0, 0, 0
  for _, point in ipairs(points) do
    local mine, other = point.losses[chosen], point.losses[answered]
    if mine and other and point.size >= part.first and point.size <= (part.last or math.huge) then
      local loss = (1 + other) / (1 + mine) - 1
      sum, most, count = sum + loss, math.max(most, loss), count + 1
    end
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

-- A miss as a line for people; `where`: the ranks, and more.
function reader_limits.miss_in_words(miss, where)
  local range = miss.last and ("%s to %s"):format(quantities.bytes(miss.first), quantities.bytes(miss.last))
    or "from " .. quantities.bytes(miss.first) .. " on"
  local cost = miss.mean and ("; mean loss %.1f %%, at most %.1f %%"):format(100 * miss.mean, 100 * miss.most)
    or "; the loss was not measured"
  return ("%s, %s: its file answers %s, and the choice is %s%s"):format(where, range, miss.answered,
    miss.chosen, cost)
end

return reader_limits
