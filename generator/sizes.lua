-- Rows by message size: which strategy for which bytes, for readers that know no shapes (NCCL, Open MPI,
-- MPICH, thresholds). It renders nothing.
--
-- sizes.worlds(source, may_win, fusion) gives, per TP size: { tp, mode, points, segments }; of the rows of
-- `fusion` (nil: NONE, the plain sums) of source.axes.
--   points    ascending { size, badness = { strategy -> share lost }, allowed = { strategy -> true }, best }
--   segments  ascending { first, last = bytes, both inclusive, strategy = row of lists.strategies, points };
--             the first starts at 0, the last has no `last`
--
-- The rule: shapes of equal bytes count alike; at each size a strategy's badness is the share of time that it
-- loses against the best there, as a mean over the shapes. The segments are the fewest that lose at no size
-- more than source.regret (sizes.REGRET, where nobody says), but what may be noise, by the intervals of both
-- times; of these, those of the least total badness (borders.c). A strategy that has no time for some
-- shape of a size is not chosen there. Between two sizes the border is their geometric mean: what is nearer
-- to one, as a ratio, does as that one.
local borders = require "core.borders"
local lists = require "lists"

local sizes = {}

sizes.REGRET = 0.02 -- a table follows what was measured, and not its noise

-- The largest number whose square is at most a * b.
local function geometric_mean(a, b)
  local root = math.tointeger(math.floor(math.sqrt(a) * math.sqrt(b)))
  while root > a and root / a > b / root do root = root - 1 end
  while root + 1 < b and (root + 1) / a <= b / (root + 1) do root = root + 1 end
  return root
end

-- The slice of each TP size that has the axes; rows of other tools do not say their mode and stand in.
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

-- size -> shape -> { times = { strategy -> time }, noise = { strategy -> half of its interval, a logarithm },
-- nil where no row has one }, of the strategies that may win.
local function times_of(rows, slice, may_win, loopback)
  local names = { "num_tokens", "hidden_size", "size", "strategy", "placement", "time_us", "low_us",
    "high_us" }
  local columns, by_size = rows:slice(slice, names), {}
  for i = 1, columns.count do
    local name = columns.strategy[i]
    if may_win[name] and (loopback or columns.placement[i] ~= "loopback") then
      local size, shape = columns.size[i], columns.num_tokens[i] << 32 | columns.hidden_size[i]
      local of_size = by_size[size] or {}
      local of = of_size[shape] or { times = {} }
      by_size[size], of_size[shape] = of_size, of
      of.times[name] = columns.time_us[i]
      if columns.low_us[i] and columns.high_us[i] then
        of.noise = of.noise or {}
        of.noise[name] = math.log(columns.high_us[i] / columns.low_us[i]) / 2
      end
    end
  end
  return by_size
end

local function fastest(times)
  local best
  for name, time in pairs(times) do
    if not best or time < times[best] or time == times[best] and name < best then best = name end
  end
  return best
end

-- What of a loss is certain: what is beyond the noise of both times; all of it, where that is unknown.
local function beyond_noise(loss, noise, name, best)
  if not noise then return loss end
  local own, other = noise[name] or 0, noise[best] or 0
  return math.max(0, loss - math.sqrt(own * own + other * other))
end

-- strategy -> mean share lost over the shapes, and the same of what is certain, of the strategies that have a
-- time for each.
local function badness_of(shapes)
  local sum, sure, seen, count = {}, {}, {}, 0
  for _, of in pairs(shapes) do
    local best = fastest(of.times)
    for name, time in pairs(of.times) do
      local loss = time / of.times[best] - 1
      sum[name] = (sum[name] or 0) + loss
      sure[name] = (sure[name] or 0) + beyond_noise(loss, of.noise, name, best)
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

-- The points of what times_of gives.
local function points_of(by_size)
  local points = {}
  for size, shapes in pairs(by_size) do
    local badness, certain = badness_of(shapes)
    if next(badness) then points[#points + 1] = { size = size, badness = badness, certain = certain } end
  end
  table.sort(points, function(a, b) return a.size < b.size end)
  return points
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
  local class, same = source.rows:classes(slice, options)[1], {}
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
    local points = points_of(times_of(source.rows, slice, allowed, source.loopback))
    if #points > 0 then
      worlds[#worlds + 1] = { tp = slice.world_size, mode = slice.mode, points = points,
        segments = sizes.segments(points, source.regret) }
    end
  end
  return worlds
end

return sizes
