-- The losses of an artifact's choices on rows from which it was not made. Shapes are looked up by the
-- artifact's own lookup (lookup.lua), so the result includes bins and fallbacks, as for its users; and, for
-- comparison, by the floor of log2, as in TensorRT-LLM.
local cell_records = require "rows.cell_records"
local fail = require "base.fail"
local lists = require "lists.lists"
local lookup = require "consult.lookup"
local rank_placement = require "lists.rank_placement"
local rows = require "core.rows"
local rows_folder = require "rows.rows_folder"
local sequences = require "base.sequences"
local statistics = require "base.statistics"

local regret = {}

-- ---- the rows ---------------------------------------------------------------------------------

-- The shapes of the rows, in order: { world_size, fusion, ..., rows = { strategy -> record } }. All rows have
-- to be of one machine.
function regret.shapes(paths)
  local by_key, shapes = {}, {}
  rows_folder.read_provenance(sequences.map(paths, function(path) return { path = path } end))
  for _, path in ipairs(paths) do
    for _, record in ipairs(fail.unless(rows.records(path))) do
      local shape = sequences.entry(shapes, by_key, cell_records.key(cell_records.record(record)), function()
        return cell_records.record(record, nil, { rows = {} })
      end)
      shape.rows[record.strategy] = record
    end
  end
  table.sort(shapes, cell_records.before)
  return shapes
end

local function may_win(record) return lists.may_win(record.strategy) end

-- The fastest row of the strategies that a table may choose.
local function best_of(shape)
  local best
  for _, record in pairs(shape.rows) do
    local is_first = not best or record.time_us < best.time_us
      or (record.time_us == best.time_us and record.strategy < best.strategy)
    if may_win(record) and is_first then best = record end
  end
  return best
end

-- ---- regret -----------------------------------------------------------------------------------

-- The loss of a choice at a shape: the measured one, as a share of the best time; and the certain one, the
-- largest gap between its interval and a lower interval, as a share of the upper end of the lower one. Nil if
-- the shape has no row of the choice.
local function regret_at(shape, strategy)
  local chosen, best = shape.rows[strategy], best_of(shape)
  if not chosen or not best then return nil end
  local raw = chosen.time_us / best.time_us - 1
  if not chosen.low_us or not best.high_us then return raw, raw end
  local certain = 0
  for _, record in pairs(shape.rows) do
    if record.high_us and may_win(record) then
      certain = math.max(certain, chosen.low_us / record.high_us - 1)
    end
  end
  return raw, certain
end

local function percentile(sorted, share) return sorted[math.max(1, math.ceil(share * #sorted))] or 0 end

local function summary_of(values)
  table.sort(values)
  return { mean = #values > 0 and statistics.sum(values) / #values or 0, p99 = percentile(values, 0.99),
    worst = values[#values] or 0 }
end

-- The losses of the answers over all shapes: { shapes, unanswered, unmeasured, certain, raw, worst = list }.
local function judge(shapes, answers)
  local certain, raw, losses = {}, {}, {}
  local found = { shapes = #shapes, unanswered = 0, unmeasured = 0 }
  for i, shape in ipairs(shapes) do
    local answer = answers[i]
    local as_measured, sure = regret_at(shape, answer.strategy)
    if not answer.measured then found.unmeasured = found.unmeasured + 1 end
    if as_measured then
      raw[#raw + 1], certain[#certain + 1] = as_measured, sure
      losses[#losses + 1] = { shape = shape, strategy = answer.strategy, best = best_of(shape),
        raw = as_measured, certain = sure }
    else
      found.unanswered = found.unanswered + 1
    end
  end
  table.sort(losses, function(a, b)
    if a.certain ~= b.certain then return a.certain > b.certain end
    if a.raw ~= b.raw then return a.raw > b.raw end
    return cell_records.before(a.shape, b.shape)
  end)
  found.certain, found.raw, found.worst = summary_of(certain), summary_of(raw), losses
  return found
end

-- ---- cells that answer for several shapes ------------------------------------------------------

-- The smallest worst certain loss of one choice for all shapes of a cell; nil if no strategy that a table may
-- choose has a row at each shape.
local function least_loss(shapes)
  local least
  for name, record in pairs(shapes[1].rows) do
    local most = may_win(record) and 0 or nil
    for _, shape in ipairs(shapes) do
      local _, certain = regret_at(shape, name)
      most = certain and most and math.max(most, certain)
    end
    if most and (not least or most < least) then least = most end
  end
  return least
end

-- Different shapes that the lookup sends to one cell: { cells, shapes, torn = the number of cells in which no
-- single choice is right for all shapes, loss = the largest unavoidable loss of these cells }; nil if the
-- artifact's answers have no cells.
local function aliased(shapes, answers, facts)
  if not facts.cells then return nil end
  local by_cell, order = {}, {}
  for i, answer in ipairs(answers) do
    if answer.cell then
      table.insert(sequences.entry(order, by_cell, answer.cell, function() return {} end), shapes[i])
    end
  end
  local found = { cells = 0, shapes = 0, torn = 0, loss = 0 }
  for _, of_cell in ipairs(order) do
    if #of_cell > 1 then
      local loss = least_loss(of_cell) or 0
      found.cells, found.shapes = found.cells + 1, found.shapes + #of_cell
      if loss > 0 then found.torn, found.loss = found.torn + 1, math.max(found.loss, loss) end
    end
  end
  return found
end

-- ---- two lookups ------------------------------------------------------------------------------

local function floor_of(value)
  local power = 1
  while 2 * power <= value do power = 2 * power end
  return power
end

-- The shape that TensorRT-LLM's lookup takes for this one: TP 3 reads the row of TP 2, 2880 that of 2048.
local function floored(shape)
  local out = cell_records.record(shape)
  for _, axis in ipairs { "world_size", "hidden_size", "num_tokens" } do out[axis] = floor_of(shape[axis]) end
  return out
end

-- The SM version that the rows' files are named after; nil: none, or several.
function regret.sm_version(paths)
  local found
  for _, path in ipairs(paths) do
    local _, _, arch = rank_placement.of_file_name(path)
    local sm = arch and arch:match("^sm(%d+)")
    if not sm or found and found ~= sm then return nil end
    found = sm
  end
  return math.tointeger(tonumber(found))
end

-- The artifact's answers, by its own lookup and by the floor of log2: { answers, floored, facts }.
local function answers_of(path, shapes, options)
  local lookups = table.move(shapes, 1, #shapes, 1, {})
  for i, shape in ipairs(shapes) do lookups[#shapes + i] = floored(shape) end
  local answers, facts = lookup.artifact(path, lookups, options)
  local by_floor = table.move(answers, #shapes + 1, 2 * #shapes, 1, {})
  for i, answer in ipairs(by_floor) do
    by_floor[i] = { strategy = answer.strategy, measured = answer.measured,
      cell = answer.measured and cell_records.key(lookups[#shapes + i]) or nil }
  end
  return { answers = table.move(answers, 1, #shapes, 1, {}), floored = by_floor, facts = facts }
end

-- The shapes with the artifact's data type, operation and fusion, if it names them, and the number of other
-- shapes.
local function kept(shapes, answers, facts)
  local kept_shapes, kept_answers = {}, {}
  for i, shape in ipairs(shapes) do
    local is_of = sequences.all({ "dtype", "op", "fusion" }, function(axis)
      return (facts[axis] or shape[axis]) == shape[axis]
    end)
    if is_of then
      kept_shapes[#kept_shapes + 1], kept_answers[#kept_answers + 1] = shape, answers[i]
    end
  end
  return kept_shapes, kept_answers, #shapes - #kept_shapes
end

-- The figures of one lookup.
local function judge_lookup(shapes, answers, facts)
  local of, given, others = kept(shapes, answers, facts)
  local found = judge(of, given)
  found.others, found.aliased = others, aliased(of, given, facts)
  return found
end

-- The losses of the choices of the artifact at `path` on these shapes: by its own lookup, and by the floor of
-- log2, with the options of lookup.artifact. Each is { shapes, others, unanswered, unmeasured, certain, raw,
-- worst = list, aliased }.
function regret.of(path, shapes, options)
  local both = answers_of(path, shapes, options)
  local by_floor = setmetatable({ cells = true }, { __index = both.facts })
  return judge_lookup(shapes, both.answers, both.facts), judge_lookup(shapes, both.floored, by_floor)
end

return regret
