-- Times that a sweep did not measure because the choice was certain without them: interpolated from the
-- points around them (interpolation.lua). A choice that rests on one is marked `derived` in the table.
--
-- The measured points give the standard error of such a time. Each is predicted by the others of its plane
-- and strategy; the miss is the difference, in log2. The square of that grows with the distance d (in
-- doublings) to the nearest of them, as that of a random walk does (the linear variogram of geostatistics:
-- Cressie, Statistics for Spatial Data, 1993, 2.3), so that the standard error of a time is s * sqrt(d), s
-- the root of the mean of the squares of miss / sqrt(d) (leave-one-out, as in Allen's PRESS, 1974). Small
-- messages are missed by more than large ones: the mean is a local one (Nadaraya-Watson, over log2 of the
-- bytes). The uncertainty of the nearest point's own interval is added.
-- tests/recorded/derived_times_lie_in_their_intervals.lua counts how many times lie outside.
local cell_records = require "rows.cell_records"
local fail = require "base.fail"
local implied_grid = require "choose.implied_grid"
local interpolation = require "choose.interpolation"
local lists = require "lists.lists"
local rows = require "core.rows"

local derive = {}

local FEWEST_POINTS = 3 -- of a strategy in a plane; fewer predict nothing
local BANDWIDTH = 1 -- doublings of bytes: how far a point's miss speaks for others
local PRIOR = 1 -- points' worth of the mean over all of them
local DEVIATIONS = 1.96 -- of a normal distribution, in half such an interval

local function log2(number) return math.log(number, 2) end

local function plane_of(record)
  return table.concat({ record.op, record.mode, record.dtype, record.fusion, record.strategy }, " ")
end

-- The standard error of a measured time, in log2, from its interval.
local function error_of(record)
  if not record.low_us then return 0 end
  return log2(record.high_us / record.low_us) / (2 * DEVIATIONS)
end

-- Takes a point into the rectangle that its plane covers.
local function widen(plane, point)
  plane.left, plane.right = math.min(plane.left, point.x), math.max(plane.right, point.x)
  plane.low, plane.high = math.min(plane.low, point.y), math.max(plane.high, point.y)
end

-- plane and strategy -> the points measured, with the rectangle that they cover
local function measured_points(records)
  local planes = {}
  for _, record in ipairs(records) do
    local key = plane_of(record)
    local point = { x = log2(record.num_tokens), y = log2(record.hidden_size),
      time = log2(record.time_us), error = error_of(record) }
    planes[key] = planes[key] or { left = math.huge, right = -math.huge, low = math.huge, high = -math.huge }
    table.insert(planes[key], point)
    widen(planes[key], point)
  end
  return planes
end

-- Whether a shape lies between the points, on either axis.
local function is_within(plane, where)
  return where.x >= plane.left and where.x <= plane.right and where.y >= plane.low and where.y <= plane.high
end

-- The misses of a plane's points, each predicted by the others: { bytes, square } and their mean square; see
-- above.
local function misses_of(points)
  local misses, sum = {}, 0
  for _, point in ipairs(points) do
    local time, _, distance = interpolation.predict(points, point, point)
    if distance > 0 then
      local square = (time - point.time) ^ 2 / distance
      misses[#misses + 1] = { bytes = point.x + point.y, square = square }
      sum = sum + square
    end
  end
  return misses, #misses > 0 and sum / #misses or 0
end

-- The square of the standard error of a prediction, in log2, a doubling away from the nearest point: the mean
-- over the misses, each with the weight of a bell curve of the doublings of bytes between it and `bytes`; the
-- mean of all counts as PRIOR further misses.
local function square_at(misses, mean, bytes)
  local weight, sum = PRIOR, PRIOR * mean
  for _, miss in ipairs(misses) do
    local bell = math.exp(-((miss.bytes - bytes) / BANDWIDTH) ^ 2 / 2)
    weight, sum = weight + bell, sum + bell * miss.square
  end
  return sum / weight
end

-- plane and strategy -> the points that the bench refused, as `fewer tokens than ranks`, or at which it
-- failed: what it cannot do goes by one of the two sizes.
local function refused_points(no_time)
  local planes = {}
  for _, entry in ipairs(no_time) do
    if not entry.skipped then
      local key = plane_of(entry)
      planes[key] = planes[key] or {}
      table.insert(planes[key], { x = log2(entry.num_tokens), y = log2(entry.hidden_size) })
    end
  end
  return planes
end

-- Whether a refused point has the same number of tokens, or the same hidden size, and no measured one lies
-- closer on that line.
local function is_refused(refused, points, where)
  for along, across in pairs { x = "y", y = "x" } do
    local function nearest(list)
      local least = math.huge
      for _, point in ipairs(list) do
        if point[along] == where[along] then
          least = math.min(least, math.abs(point[across] - where[across]))
        end
      end
      return least
    end
    local closest = nearest(refused)
    if closest < math.huge and closest <= nearest(points) then return true end
  end
  return false
end

-- The times of one TP size that are neither in `records` (rows with a time) nor in `no_time` (records with a
-- reason), for all points of the spec: { world_size, dtype, op, mode, fusion, hidden_size, num_tokens,
-- strategy, time_us, spread, noise, placement }, in order; spread is its standard error, in log2, and noise
-- how much of that is the nearest point's. Points beyond the measured ones, and those with a
-- neighbour that the bench refused or failed at, get no time.
function derive.times(spec, world_size, records, no_time)
  local known, out, misses, means = {}, {}, {}, {}
  local points, refused = measured_points(records), refused_points(no_time)
  for _, record in ipairs(records) do known[cell_records.key(record)] = true end
  for _, entry in ipairs(no_time) do
    known[cell_records.key(cell_records.record(entry, entry.strategy, { world_size = world_size }))] = true
  end
  for key, record in pairs(cell_records.wanted(spec, cell_records.cells(spec, world_size))) do
    local plane = points[plane_of(record)]
    local where = { x = log2(record.num_tokens), y = log2(record.hidden_size) }
    if not known[key] and not record.skip and plane and #plane >= FEWEST_POINTS and is_within(plane, where)
      and not is_refused(refused[plane_of(record)] or {}, plane, where) then
      if not misses[plane] then misses[plane], means[plane] = misses_of(plane) end
      local time, nearest, distance = interpolation.predict(plane, where)
      local square = square_at(misses[plane], means[plane], where.x + where.y)
      record.time_us, record.placement = 2 ^ time, records[1].placement
      record.spread = math.sqrt(nearest.error ^ 2 + square * distance)
      record.noise = nearest.error
      out[#out + 1] = record
    end
  end
  table.sort(out, cell_records.before)
  return out
end

-- The rows of a file that have tokens and a hidden size, without loopback rows that do not compete.
local function rows_with_shapes(source, path)
  local out = {}
  for _, row in ipairs(fail.unless(rows.records(path))) do
    local competes = source.loopback or row.placement ~= "loopback"
    if row.num_tokens and competes then out[#out + 1] = row end
  end
  return out
end

local function shape_of(record)
  return ("%s %s %s %s %d %d"):format(record.dtype, record.op, record.mode, record.fusion,
    record.hidden_size, record.num_tokens)
end

-- Of times in a block: those in cells without any row that may win, within the least and the largest
-- message of the strategy. In rows of another tool, a strategy without a row beside others may be one that
-- cannot run there.
local function in_holes(times, records)
  local has_row, least, largest, out = {}, {}, {}, {}
  for _, row in ipairs(records) do
    local plane, elements = plane_of(row), row.hidden_size * row.num_tokens
    if lists.may_win(row.strategy) then has_row[shape_of(row)] = true end
    least[plane] = math.min(least[plane] or elements, elements)
    largest[plane] = math.max(largest[plane] or elements, elements)
  end
  for _, time in ipairs(times) do
    local plane, elements = plane_of(time), time.hidden_size * time.num_tokens
    local is_inside = elements >= least[plane] and elements <= largest[plane]
    if is_inside and not has_row[shape_of(time)] then out[#out + 1] = time end
  end
  return out
end

-- The derived times of a file without a recorded grid: in the grid that the rows imply, or in that of
-- spec.lua. For a sweep, all times that it left out; for other rows, those of cells without any row.
local function times_without_grid(source, entry, is_sweep)
  local measured, out = rows_with_shapes(source, entry.path), {}
  local grids = entry.spec and { { spec = entry.spec, records = measured } } or implied_grid.of(measured)
  for _, grid in ipairs(grids) do
    local no_time = entry.provenance and entry.provenance.no_time or {}
    local times = derive.times(grid.spec, entry.tp, grid.records, no_time)
    if not is_sweep then times = in_holes(times, grid.records) end
    table.move(times, 1, #times, #out + 1, out)
  end
  return out
end

-- Whether rows are of no known sweep: of another tool, or merged of several specs.
function derive.is_foreign(entry) return not (entry.provenance and entry.provenance.spec) end

local function times_of_file(source, entry)
  local record = entry.provenance
  if record and record.derived then
    if entry.spec then
      return derive.times(entry.spec, entry.tp, rows_with_shapes(source, entry.path), record.no_time)
    end
    return times_without_grid(source, entry, true)
  elseif derive.is_foreign(entry) and not source.only_measured
    and (entry.spec or implied_grid.has_holes(source.rows, entry.tp)) then
    return times_without_grid(source, entry, false)
  end
  return {}
end

-- The derived times of a source (of model.load), computed once. A sweep derives those that it left out; of
-- other rows, cells without any row get times, unless the source is `only_measured`.
function derive.of_source(source)
  if source.derived then return source.derived end
  local out = {}
  for _, entry in ipairs(source.files) do
    local times = times_of_file(source, entry)
    table.move(times, 1, #times, #out + 1, out)
  end
  source.derived = out
  return out
end

return derive
