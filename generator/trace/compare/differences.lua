-- Reports side by side: the first is the base of all differences. Of every sheet: the rows that several have,
-- with differences and percent; those that only the base has; those that only another report has. Rows of
-- the same key are summed first, so that no row is counted twice.
--
-- A report: { label = "256thread", names = those of its sheets in order,
-- sheets = { [name] = { columns = names, rows = { { [column] = text }... } } } }; see sources.lua.
local grouping = require "trace.ops.grouping"
local ordering = require "base.ordering"
local sequences = require "base.sequences"
local sheet_list = require "trace.reports.list"

local differences = {}

local GREEN, WHITE, RED = 0x63BE7B, 0xFFFFFF, 0xF8696B

-- The way to join the values of rows with the same key; the first pattern in a column's name counts. Columns
-- without a pattern or without `join` are not compared. only: the value of a single row is kept; several rows
-- have none.
local rules = {
  { pattern = "^Cumulative" }, { pattern = "UID" }, { pattern = "_std$" }, { pattern = "^std_" },
  { pattern = "_first$" }, { pattern = "^pct_", join = "only" },
  { pattern = "mean", join = "mean" }, { pattern = "^avg_", join = "only" },
  { pattern = "median", join = "only" }, { pattern = "_min$", join = "min" },
  { pattern = "_max$", join = "max" },
  { pattern = "sum$", join = "sum" }, { pattern = "[Cc]ount$", join = "sum" },
  { pattern = "^total_", join = "sum" }, { pattern = "^Total ", join = "sum" },
  { pattern = "[Pp]ercent", join = "sum" }, { pattern = "^time ms$", join = "sum" },
  { pattern = "^times_", join = "sum" },
}

local function rule_of(column)
  local rule = sequences.find(rules, function(rule) return column:find(rule.pattern) end)
  return rule and rule.join
end

-- The first sheet of this name, for its columns.
local function example(reports, name)
  return sequences.map(reports, function(report) return report.sheets[name] end)[1]
end

-- All columns of a sheet in any report, in order of first appearance.
local function all_columns(reports, name)
  local columns = {}
  for _, report in ipairs(reports) do
    ordering.add_new(columns, report.sheets[name] and report.sheets[name].columns or {})
  end
  return columns
end

-- The columns `name` and `param: ...`. Which operand is transposed is read from the kernel's name: it differs
-- between GPUs for the same op.
local function is_usual_key(column)
  return column == "name" or column:find("^param: ") ~= nil and column ~= "param: transpose"
end

-- Keys, compared columns { name, join } and the count column of a sheet.
local function shape_of(reports, name)
  local columns, keys, values, weight = all_columns(reports, name), sheet_list.keys(name), {}, nil
  if keys then
    local has = sequences.set(columns)
    keys = sequences.filter(keys, function(column) return has[column] end)
  else
    keys = sequences.filter(columns, is_usual_key)
    if #keys == 0 then keys[1] = example(reports, name).columns[1] end
  end
  local is_key = sequences.set(keys)
  for _, column in ipairs(columns) do
    local join = not is_key[column] and rule_of(column)
    if join then values[#values + 1] = { name = column, join = join } end
    if not is_key[column] and column:lower():find("count$") then weight = weight or column end
  end
  return { keys = keys, values = values, weight = weight }
end

-- ---- one report's rows, by key -----------------------------------------------------------------

local join = {
  sum = grouping.total,
  min = function(values) return math.min(table.unpack(values)) end,
  max = function(values) return math.max(table.unpack(values)) end,
  only = function(values) return #values == 1 and values[1] or nil end,
  mean = function(values, weights)
    if #values == 1 then return values[1] end
    local all = grouping.total(weights)
    local products = sequences.map(values, function(value, i) return value * weights[i] end)
    return all > 0 and grouping.total(products) / all or nil
  end,
}

local function key_of(row, keys)
  local parts = sequences.map(keys, function(column) return row[column] or "" end)
  return table.concat(parts, "\0"), parts
end

-- Joins rows of one key: { [column] = number }.
local function joined(rows, shape)
  local out = {}
  for _, column in ipairs(shape.values) do
    local values, weights = {}, {}
    for _, row in ipairs(rows) do
      local number = tonumber(row[column.name])
      if number and number == number then
        values[#values + 1] = number
        weights[#weights + 1] = tonumber(shape.weight and row[shape.weight]) or 1
      end
    end
    if #values > 0 then out[column.name] = join[column.join](values, weights) end
  end
  return out
end

-- { order = keys, parts = { [key] = texts }, values = { [key] = { [column] = number } } }
local function by_key(sheet, shape)
  local out = { order = {}, parts = {}, values = {} }
  local function key(row) return (key_of(row, shape.keys)) end
  for i, rows in ipairs(ordering.groups(sheet and sheet.rows or {}, key)) do
    local _, parts = key_of(rows[1], shape.keys)
    out.order[i], out.parts[rows.key], out.values[rows.key] = rows.key, parts, joined(rows, shape)
  end
  return out
end

-- ---- the sheets --------------------------------------------------------------------------------

local function is_time(column)
  return column:find("µs") or column:find("_us") or column:find("time") or column:find("latency")
    or column:find("^dur")
end

local function columns_of(reports, shape)
  local columns, colours = table.move(shape.keys, 1, #shape.keys, 1, {}), {}
  local function add(...) columns[#columns + 1] = string.format(...) end
  for _, value in ipairs(shape.values) do
    for _, report in ipairs(reports) do add("%s::%s", report.label, value.name) end
    for i = 2, #reports do
      add("%s__%s_diff", value.name, reports[i].label)
      add("%s__%s_pct", value.name, reports[i].label)
      if is_time(value.name) and value.join ~= "min" and value.join ~= "max" then
        colours[#columns] = { GREEN, WHITE, RED }
      end
    end
  end
  return columns, colours
end

local function common_row(parts, shape, values)
  local row, n = table.move(parts, 1, #parts, 1, {}), #parts
  local function add(value)
    n = n + 1
    row[n] = value
  end
  for _, column in ipairs(shape.values) do
    local base = values[1] and values[1][column.name]
    for i = 1, values.n do add(values[i] and values[i][column.name]) end
    for i = 2, values.n do
      local value = values[i] and values[i][column.name]
      local difference = base and value and value - base
      add(difference)
      add(difference and base ~= 0 and 100 * difference / base or nil)
    end
  end
  return row
end

local function common_sheet(name, reports, tables, shape)
  local columns, colours = columns_of(reports, shape)
  local sheet = { name = name, columns = columns, colours = colours, rows = {} }
  for _, key in ipairs(tables[1].order) do
    local values, count = { n = #reports }, 0
    for i, one in ipairs(tables) do
      values[i] = one.values[key] or false
      if values[i] then count = count + 1 end
    end
    if count > 1 then sheet.rows[#sheet.rows + 1] = common_row(tables[1].parts[key], shape, values) end
  end
  return sheet
end

-- The rows of `from` with keys that `other` lacks.
local function only_sheet(name, label, from, other, shape)
  local columns = table.move(shape.keys, 1, #shape.keys, 1, {})
  for _, value in ipairs(shape.values) do columns[#columns + 1] = label .. "::" .. value.name end
  local sheet = { name = name, columns = columns, rows = {} }
  for _, key in ipairs(from.order) do
    if not other.values[key] then
      local row = table.move(from.parts[key], 1, #from.parts[key], 1, {})
      for i, value in ipairs(shape.values) do row[#shape.keys + i] = from.values[key][value.name] end
      sheet.rows[#sheet.rows + 1] = row
    end
  end
  return sheet
end

local function add_if_any(list, sheet)
  if #sheet.rows > 0 then list[#list + 1] = sheet end
end

local function add_sheets(list, reports, name)
  local shape = shape_of(reports, name)
  local tables = sequences.map(reports, function(report) return by_key(report.sheets[name], shape) end)
  -- The time line has the same rows everywhere.
  local common = name == "gpu_timeline" and name or name .. "_common"
  add_if_any(list, common_sheet(common, reports, tables, shape))
  for i = 2, #reports do
    local label = reports[i].label
    add_if_any(list, only_sheet(("%s_only_baseline_%s"):format(name, label), reports[1].label, tables[1],
      tables[i], shape))
    add_if_any(list, only_sheet(("%s_only_variant_%s"):format(name, label), label, tables[i], tables[1],
      shape))
  end
end

-- The names of all sheets, in order of first appearance.
local function names_of(reports)
  local names = {}
  for _, report in ipairs(reports) do ordering.add_new(names, report.names) end
  return names
end

-- The sheets of a comparison of two or more reports.
function differences.sheets(reports)
  local list = {}
  for _, name in ipairs(names_of(reports)) do
    if sheet_list.keys(name) ~= false then add_sheets(list, reports, name) end
  end
  return list
end

-- One number of each report: of the row of `sheet` with the first key `key`, in `column`; nil if there is
-- none.
function differences.number(report, sheet, key, column)
  local found = report.sheets[sheet]
  for _, row in ipairs(found and found.rows or {}) do
    if row[found.columns[1]] == key then return tonumber(row[column]) end
  end
end

return differences
