-- The frame of metrics with a line per collective, over all ranks.
--
--   per_collective.metric {
--     columns = { { key = "calls", title = "calls" }, ... },
--     by_group_size = true,           collectives of different numbers of ranks apart; default: together
--     match_ranks = true,             a call in several ranks' files counts once, with its shortest time
--     row = function(calls, args) -> values by key | nil, what_is_missing
--     check = function(args) }        raises on wrong options
--
-- `calls` are those of activity.lua. Plain output: a table with "-" for unknown values, and the reasons on
-- stderr; it is an error if no collective has a value. --json: the same with names, and all digits.
local activity = require "profile.activity"
local fail = require "base.fail"
local json = require "codec.json"
local ordering = require "base.ordering"
local kernels = require "profile.kernels"
local call_matching = require "profile.call_matching"
local sequences = require "base.sequences"

local per_collective = {}

-- The calls as lists with name and group_size, by these.
local function groups_of(calls, by_group_size)
  local groups = ordering.groups(calls, function(call)
    return by_group_size and ("%s %s"):format(call.name, call.group_size) or call.name
  end)
  for _, group in ipairs(groups) do
    group.name, group.group_size = group[1].name, by_group_size and group[1].group_size or nil
    group.size = group.group_size or 0
  end
  return ordering.sort(groups, ordering.by("name", "size"))
end

local function cell(value)
  if value == nil then return "-" end
  return math.type(value) == "float" and ("%.6g"):format(value) or tostring(value)
end

-- Lines of equally wide columns, the first to the left.
local function print_table(columns, rows)
  local widths, lines = {}, { sequences.field(columns, "title") }
  for i, row in ipairs(rows) do
    lines[i + 1] = sequences.map(columns, function(column) return cell(row[column.key]) end)
  end
  for _, line in ipairs(lines) do
    for k, text in ipairs(line) do widths[k] = math.max(widths[k] or 0, #text) end
  end
  for _, line in ipairs(lines) do
    for k, text in ipairs(line) do
      line[k] = ("%" .. (k == 1 and "-" or "") .. widths[k] .. "s"):format(text)
    end
    io.stdout:write(table.concat(line, "  "), "\n")
  end
end

-- The rows; and the reasons for missing rows, as texts.
local function rows_of(metric, groups, args)
  local rows, missing = {}, {}
  for _, group in ipairs(groups) do
    local row, reason = metric.row(group, args)
    if not row then
      missing[#missing + 1] = ("%s needs %s"):format(group.name, reason)
      row = { missing = reason, calls_without_value = #group }
    end
    row.collective, row.group_size = group.name, group.group_size
    rows[#rows + 1] = row
  end
  return rows, missing
end

local function print_json(row, ranks, rows)
  io.stdout:write(json.encode { metric = row.name, unit = row.unit, count = #ranks,
    files = activity.files(ranks), collectives = json.array(rows) }, "\n")
end

local function run(metric, args, row)
  if metric.check then metric.check(args) end
  local ranks = activity.load(args.trace)
  local calls = metric.match_ranks and call_matching.shortest(ranks) or call_matching.all(ranks)
  if #calls == 0 then fail.input("%s: %s needs %s", ranks[1].label, row.name, kernels.no_communication) end
  local rows, missing = rows_of(metric, groups_of(calls, metric.by_group_size), args)
  if #rows == #missing then
    fail.input("%s: no %s: %s", ranks[1].label, row.name, table.concat(missing, "; "))
  end
  if args.json then return print_json(row, ranks, rows) end
  for _, text in ipairs(missing) do fail.note("%s: %s", ranks[1].label, text) end
  local columns = { { key = "collective", title = "collective" } }
  print_table(table.move(metric.columns, 1, #metric.columns, 2, columns), rows)
end

-- The calls with known bytes, and the number of the others.
function per_collective.sized(calls)
  local sized = sequences.filter(calls, function(call) return call.bytes end)
  return sized, #calls - #sized
end

per_collective.no_bytes = "bytes: its kernels and record_param_comms have no In msg nelems and dtype"

function per_collective.metric(metric)
  return { row = metric.row, run = function(args, row) return run(metric, args, row) end }
end

return per_collective
