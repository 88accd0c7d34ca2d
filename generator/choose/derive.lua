-- Times that a sweep did not measure because the choice was certain without them: interpolated from the
-- points around them (interpolation.lua). A choice of an interpolated time is marked `derived` in the table.
local cell_records = require "rows.cell_records"
local fail = require "base.fail"
local implied_grid = require "choose.implied_grid"
local interpolation = require "choose.interpolation"
local lists = require "lists.lists"
local rows = require "core.rows"
local sequences = require "base.sequences"

local derive = {}

local FEWEST_POINTS = 3 -- of a strategy in a plane; fewer are not enough for a prediction

local function log2(number) return math.log(number, 2) end

local function plane_of(record)
  return table.concat({ record.op, record.mode, record.dtype, record.fusion, record.strategy }, " ")
end

-- Extends the rectangle that a plane covers by a point.
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
      time = log2(record.time_us) }
    planes[key] = planes[key] or { left = math.huge, right = -math.huge, low = math.huge, high = -math.huge }
    table.insert(planes[key], point)
    widen(planes[key], point)
  end
  return planes
end

-- Whether a shape lies in the rectangle that the points cover.
local function is_within(plane, where)
  return where.x >= plane.left and where.x <= plane.right and where.y >= plane.low and where.y <= plane.high
end

-- plane and strategy -> the points that the bench refused (such as `fewer tokens than ranks`), or at which it
-- failed. Such limits depend on one of the two sizes.
local function refused_points(no_time)
  local planes = {}
  for _, entry in ipairs(no_time) do
    if not entry.skipped then
      table.insert(sequences.at(planes, plane_of(entry)),
        { x = log2(entry.num_tokens), y = log2(entry.hidden_size) })
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

-- The times of one placement that are neither in `records` (rows with a time) nor in `no_time` (records with
-- a reason), for all points of the spec: { world_size, dtype, op, mode, fusion, hidden_size, num_tokens,
-- strategy, time_us, placement }, in order. Points beyond the measured ones, and those with a neighbour that
-- the bench refused or failed at, get no time; nor do strategies with fewer than FEWEST_POINTS points.
-- `nodes`: of the ranks, by default 1.
function derive.times(spec, world_size, records, no_time, nodes)
  local known, out = {}, {}
  local points, refused = measured_points(records), refused_points(no_time)
  for _, record in ipairs(records) do known[cell_records.key(record)] = true end
  for _, entry in ipairs(no_time) do
    local placement = { world_size = world_size, nodes = nodes }
    known[cell_records.key(cell_records.record(entry, entry.strategy, placement))] = true
  end
  for key, record in pairs(cell_records.wanted(spec, cell_records.cells(spec, world_size, nodes))) do
    local plane = points[plane_of(record)]
    local where = { x = log2(record.num_tokens), y = log2(record.hidden_size) }
    if not known[key] and not record.skip and plane and #plane >= FEWEST_POINTS and is_within(plane, where)
      and not is_refused(refused[plane_of(record)] or {}, plane, where) then
      record.time_us, record.placement = 2 ^ interpolation.predict(plane, where), records[1].placement
      out[#out + 1] = record
    end
  end
  table.sort(out, cell_records.before)
  return out
end

-- The strategies that may do a cell of the spec and were not tried there: records of cell and strategy, in
-- order. At a cell with a time they are those without any time in the plane; at other cells those without an
-- interpolated time. A strategy that the bench refused wherever it was tried in the plane is not among them.
-- `derived`: of derive.times; `nodes`: as there.
function derive.untried(spec, world_size, records, no_time, derived, nodes)
  local is_reached, is_known, has_time, was_refused, out = {}, {}, {}, {}, {}
  local function key_of(record, strategy)
    return cell_records.key(cell_records.record(record, strategy, { world_size = world_size, nodes = nodes }))
  end
  for _, record in ipairs(records) do
    is_reached[key_of(record)], has_time[plane_of(record)] = true, true
    is_known[key_of(record, record.strategy)] = true
  end
  for _, entry in ipairs(no_time) do
    is_known[key_of(entry, entry.strategy)] = true
    if not entry.skipped then was_refused[plane_of(entry)] = true end
  end
  for _, record in ipairs(derived) do is_known[key_of(record, record.strategy)] = true end
  for key, record in pairs(cell_records.wanted(spec, cell_records.cells(spec, world_size, nodes))) do
    local plane, is_open = plane_of(record), not is_known[key] and not record.skip
    if has_time[plane] then
      is_open = is_open and not is_reached[key_of(record)]
    else
      is_open = is_open and not was_refused[plane]
    end
    if is_open and lists.may_win(record.strategy) then out[#out + 1] = record end
  end
  table.sort(out, cell_records.before)
  return out
end

-- The rows of a file that have tokens and a hidden size, without loopback rows that do not compete.
local function rows_with_shapes(source, path)
  return sequences.filter(fail.unless(rows.records(path)), function(row)
    return row.num_tokens and (source.loopback or row.placement ~= "loopback")
  end)
end

local function shape_of(record)
  return ("%s %s %s %s %d %d"):format(record.dtype, record.op, record.mode, record.fusion,
    record.hidden_size, record.num_tokens)
end

-- Of times in a block: those in cells without any row that may win, within the least and the largest
-- message of the strategy. In rows of another tool, a strategy without a row beside others may be one that
-- cannot run there.
local function in_holes(times, records)
  local has_row, least, largest = {}, {}, {}
  for _, row in ipairs(records) do
    local plane, elements = plane_of(row), row.hidden_size * row.num_tokens
    if lists.may_win(row.strategy) then has_row[shape_of(row)] = true end
    least[plane] = math.min(least[plane] or elements, elements)
    largest[plane] = math.max(largest[plane] or elements, elements)
  end
  return sequences.filter(times, function(time)
    local plane, elements = plane_of(time), time.hidden_size * time.num_tokens
    return elements >= least[plane] and elements <= largest[plane] and not has_row[shape_of(time)]
  end)
end

-- The derived times of a file without a recorded grid: in the grid that the rows imply, or in that of
-- spec.lua. For a sweep: all times that it did not measure. For other rows: those of cells without any row.
local function times_without_grid(source, entry, is_sweep)
  local measured, out = rows_with_shapes(source, entry.path), {}
  local grids = entry.spec and { { spec = entry.spec, records = measured } } or implied_grid.of(measured)
  for _, grid in ipairs(grids) do
    local no_time = entry.provenance and entry.provenance.no_time or {}
    local times = derive.times(grid.spec, entry.tp, grid.records, no_time, entry.nodes)
    if not is_sweep then times = in_holes(times, grid.records) end
    sequences.append(out, times)
  end
  return out
end

-- Whether rows are not those of one sweep: they are another tool's, or merged from several specs.
function derive.is_foreign(entry) return not (entry.provenance and entry.provenance.spec) end

-- The rows and derived times of the file of a sweep that left out times, computed once; nil for other files
-- and without the sweep's grid.
local function sweep_of_file(source, entry)
  local record = entry.provenance
  if not (record and record.derived and entry.spec) then return nil end
  if not entry.sweep then
    local records = rows_with_shapes(source, entry.path)
    entry.sweep = { records = records,
      times = derive.times(entry.spec, entry.tp, records, record.no_time, entry.nodes) }
  end
  return entry.sweep
end

local function times_of_file(source, entry)
  local record, sweep = entry.provenance, sweep_of_file(source, entry)
  if sweep then
    return sweep.times
  elseif record and record.derived then
    return times_without_grid(source, entry, true)
  elseif derive.is_foreign(entry) and not source.only_measured
    and (entry.spec or implied_grid.has_holes(source.rows, entry)) then
    return times_without_grid(source, entry, false)
  end
  return {}
end

-- The untried strategies of a source (of model.load), computed once: those of sweeps that left out times.
function derive.untried_of_source(source)
  source.untried = source.untried or sequences.join(source.files, function(entry)
    local sweep = sweep_of_file(source, entry)
    return sweep and derive.untried(entry.spec, entry.tp, sweep.records, entry.provenance.no_time,
      sweep.times, entry.nodes) or {}
  end)
  return source.untried
end

-- The derived times of a source (of model.load), computed once. A sweep derives those that it left out; of
-- other rows, cells without any row get times, unless the source is `only_measured`.
function derive.of_source(source)
  source.derived = source.derived or sequences.join(source.files, function(entry)
    return times_of_file(source, entry)
  end)
  return source.derived
end

return derive
