-- Choices by message size, for readers that have no shapes (NCCL, Open MPI, MPICH, thresholds). It renders
-- nothing.
--
-- sizes.worlds(source, may_win, fusion) gives, per TP size: { tp, mode, points, segments, measured }; of the
-- rows of `fusion` (nil: NONE, the plain sums) of source.axes.
--   points    ascending { size, badness = { strategy -> share lost }, allowed = { strategy -> true }, best }
--   measured  { first, last = bytes } of the sizes at which anything was; other points follow from these
--   segments  ascending { first, last = bytes, both inclusive, strategy = row of lists.strategies, points };
--             the first starts at 0, the last has no `last`
--
-- The rule: shapes of equal bytes count alike; at each size a strategy's badness is the share of time that it
-- loses against the best there, as a mean over the shapes; times that a sweep left out count as in tables
-- by shape (derive.lua); a shape that has no other times counts only if its size has no other shape. The
-- segments are the fewest that lose at no size more than source.regret (default: sizes.REGRET), apart from
-- noise as in select.c; of these, those of the least total badness (borders.c). A strategy
-- that has no time for some shape of a size is not chosen there. Between two sizes the border is their
-- geometric mean: what is nearer to one, as a ratio, does as that one.
local borders = require "core.borders"
local choices = require "core.choose"
local derive = require "base.lazy" "choose.derive"
local lists = require "lists.lists"
local select = require "core.select"

local sizes = {}

sizes.REGRET = 0.02 -- a table follows what was measured, and not its noise

-- The largest number whose square is at most a * b.
local function geometric_mean(a, b)
  local root = math.tointeger(math.floor(math.sqrt(a) * math.sqrt(b)))
  while root > a and root / a > b / root do root = root - 1 end
  while root + 1 < b and (root + 1) / a <= b / (root + 1) do root = root + 1 end
  return root
end

-- Whether a derived time is of a slice.
local function is_of(slice, time)
  return time.world_size == slice.world_size and time.dtype == slice.dtype and time.op == slice.op and
    time.mode == slice.mode and time.fusion == slice.fusion
end

-- The slice of each TP size that has the axes; rows of other tools, which have no mode, are used if there is
-- none.
local function find_slices(source, fusion)
  local found = {}
  for _, slice in ipairs(source.rows:slices()) do
    local axes = source.axes
    if slice.dtype == axes.dtype and slice.op == axes.op and slice.fusion == fusion then
      if slice.mode == axes.mode or slice.mode == "unknown" and not found[slice.world_size] then
        found[slice.world_size] = slice
      end
    end
  end
  local ordered = {}
  for _, slice in pairs(found) do ordered[#ordered + 1] = slice end
  table.sort(ordered, function(a, b) return a.world_size < b.world_size end)
  return ordered
end

-- What is known of a time: measured ones have their interval and launches, derived ones a spread.
local NUMBERS = { "time_us", "low_us", "high_us", "launches" }

local function add_time(by_size, size, tokens, hidden_size, strategy, time)
  local of_size, shape = by_size[size] or {}, tokens << 32 | hidden_size
  by_size[size], of_size[shape] = of_size, of_size[shape] or {}
  of_size[shape][strategy] = time
end

-- size -> shape -> strategy -> { time_us, and what select.noise takes; derived = true where it follows from
-- those around it }, of the strategies that may win.
local function times_of(source, slice, may_win)
  local names = { "num_tokens", "hidden_size", "size", "strategy", "placement", table.unpack(NUMBERS) }
  local columns, by_size = source.rows:slice(slice, names), {}
  local function is_wanted(strategy, placement)
    return may_win[strategy] and (source.loopback or placement ~= "loopback")
  end
  for i = 1, columns.count do
    if is_wanted(columns.strategy[i], columns.placement[i]) then
      local time = {}
      for _, name in ipairs(NUMBERS) do time[name] = columns[name][i] end
      add_time(by_size, columns.size[i], columns.num_tokens[i], columns.hidden_size[i], columns.strategy[i],
        time)
    end
  end
  local bytes = lists.find("dtypes", slice.dtype).bytes
  for _, time in ipairs(derive.of_source(source)) do
    if is_of(slice, time) and is_wanted(time.strategy, time.placement) then
      add_time(by_size, time.num_tokens * time.hidden_size * bytes, time.num_tokens, time.hidden_size,
        time.strategy, { time_us = time.time_us, spread = time.spread, noise = time.noise, derived = true })
    end
  end
  return by_size
end

local function fastest(times)
  local best
  for name, time in pairs(times) do
    local is_less = not best or time.time_us < times[best].time_us
    if is_less or time.time_us == times[best].time_us and name < best then best = name end
  end
  return best
end

local function is_measured(times)
  for _, time in pairs(times) do
    if not time.derived then return true end
  end
  return false
end

-- The shapes with a measured time; all shapes if none has one. A shape with interpolated times only is less
-- certain than the measured ones of its size, and may lack strategies that they have.
local function witnesses_of(shapes)
  local measured = {}
  for shape, times in pairs(shapes) do
    if is_measured(times) then measured[shape] = times end
  end
  return next(measured) and measured or shapes, next(measured) ~= nil
end

-- strategy -> mean share lost over the shapes, and the same of what is certain, that is beyond noise (all of
-- it, where that is unknown), of the strategies that have a time for each.
local function badness_of(shapes)
  local sum, sure, seen, count = {}, {}, {}, 0
  for _, times in pairs(shapes) do
    local best = times[fastest(times)]
    for name, time in pairs(times) do
      local loss = time.time_us / best.time_us - 1
      local noise = loss > 0 and select.noise(best, time) or 0
      sum[name] = (sum[name] or 0) + loss
      sure[name] = (sure[name] or 0) + math.max(0, loss - noise)
      seen[name] = (seen[name] or 0) + 1
    end
    count = count + 1
  end
  local badness, certain = {}, {}
  for name, total in pairs(sum) do
    if seen[name] == count then badness[name], certain[name] = total / count, sure[name] / count end
  end
  return badness, certain
end

local function least(values)
  local found = math.huge
  for _, value in pairs(values) do found = math.min(found, value) end
  return found
end

-- Which strategies a point may have: name -> true.
local function allowed_of(badness, certain, regret)
  local allowed, least_badness, least_certain = {}, least(badness), least(certain or {})
  for name, loss in pairs(badness) do
    local is_noise = certain and certain[name] <= least_certain
    if loss - least_badness <= regret or is_noise then allowed[name] = true end
  end
  return allowed
end

local function segments_of(points, chosen)
  local segments = {}
  for i, point in ipairs(points) do
    local open = segments[#segments]
    if not open or open.strategy.name ~= chosen[i] then
      if open then open.last = geometric_mean(points[i - 1].size, point.size) end
      segments[#segments + 1] = { first = open and open.last + 1 or 0, points = {},
        strategy = lists.find("strategies", chosen[i]) }
    end
    table.insert(segments[#segments].points, point)
  end
  return segments
end

-- The points of what times_of gives; and { first, last }, the least and the largest of their sizes at which
-- anything was measured.
local function points_of(by_size)
  local points, measured = {}, {}
  for size, shapes in pairs(by_size) do
    local witnesses, are_measured = witnesses_of(shapes)
    local badness, certain = badness_of(witnesses)
    if next(badness) then
      points[#points + 1] = { size = size, badness = badness, certain = certain }
      if are_measured then
        measured.first = math.min(measured.first or size, size)
        measured.last = math.max(measured.last or size, size)
      end
    end
  end
  table.sort(points, function(a, b) return a.size < b.size end)
  return points, measured
end

-- The one with the least badness; of several the first by `place_of`.
local function best_of(badness, place_of)
  local best
  for name, loss in pairs(badness) do
    local is_less = not best or loss < badness[best]
    if is_less or loss == badness[best] and place_of[name] < place_of[best] then best = name end
  end
  return best
end

-- The segments of points { size, badness, certain (or nil) }, ascending, that lose no more than `regret`.
function sizes.segments(points, regret)
  local ordered, place_of = lists.names("strategies"), {}
  for place, name in ipairs(ordered) do place_of[name] = place end
  for _, point in ipairs(points) do
    point.best = best_of(point.badness, place_of)
    point.allowed = allowed_of(point.badness, point.certain, regret or sizes.REGRET)
  end
  return segments_of(points, borders.choose(points, ordered))
end

-- The strategies that may win a slice: name -> true. Where numerics matter, those with the wanted bits.
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

-- See the head of this file; may_win(row of lists.strategies). Worlds without any such row are left out.
function sizes.worlds(source, may_win, fusion)
  local worlds = {}
  for _, slice in ipairs(find_slices(source, fusion or "NONE")) do
    local allowed = winners_of(source, slice, may_win)
    local points, measured = points_of(times_of(source, slice, allowed))
    if measured.first then
      worlds[#worlds + 1] = { tp = slice.world_size, mode = slice.mode, points = points,
        measured = measured,
        segments = sizes.segments(points, source.regret) }
    end
  end
  return worlds
end

return sizes
