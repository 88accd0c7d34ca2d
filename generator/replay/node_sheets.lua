-- The sheets gemm_node_replay, conv_node_replay and node_replay of replayed ops. The first columns are those
-- of earlier such reports; then come the op's parameters, then the results and their circumstances.
local ordering = require "base.ordering"
local grouping = require "trace.ops.grouping"
local sequences = require "base.sequences"

local node_sheets = {}

-- The range of fewer samples is not a 95 % interval of the median: the range of five samples contains the
-- median in 93.75 % of all cases, that of three in 75 %.
node_sheets.LEAST_SAMPLES = 6

local kinds = {
  { key = "gemm", name = "gemm_node_replay", word = "gemm" },
  { key = "conv", name = "conv_node_replay", word = "conv" },
}

-- A difference and its share in percent; empty if one of them is unknown.
local function difference(time, profile)
  if not time or not profile or profile <= 0 then return nil, nil end
  return time - profile, 100 * (time - profile) / profile
end

-- ---- columns: title, and the value from a row ----------------------------------------------------------

local function documented(word)
  local bench = word .. "-bench"
  return {
    { word .. " no.", function(row) return row.number end },
    { ("Avg. %s time (us)"):format(bench), function(row) return row.bench_us end },
    { "Avg. replay time (us)", function(row) return row.answer and row.answer.warm.mean end },
    { "Avg. profile time (us)", function(row) return row.op.time and row.op.time.mean end },
    { "Diff profile vs. replay (us)", function(row)
      return (difference(row.comparable_us, row.profile_us))
    end },
    { "Diff profile vs. replay (pct)", function(row)
      return (select(2, difference(row.comparable_us, row.profile_us)))
    end },
    { ("Diff profile vs. %s (us)"):format(bench), function(row)
      return (difference(row.comparable_bench_us, row.profile_us))
    end },
    { ("Diff profile vs. %s (pct)"):format(bench), function(row)
      return (select(2, difference(row.comparable_bench_us, row.profile_us)))
    end },
  }
end

-- TFLOP/s of the warm calls' median.
local function rate(row)
  local answer, flops = row.answer, row.op.flops
  return answer and flops and answer.warm.median > 0 and flops / answer.warm.median / 1e6 or nil
end

local function of_answer(key) return function(row) return row.answer and row.answer[key] end end

-- A number of a summary; an interval only if there are enough samples.
local function number_of(summary, key)
  if not summary then return nil end
  if key ~= "median" and summary.samples < node_sheets.LEAST_SAMPLES then return nil end
  return summary[key]
end

local function gain(key)
  return function(row)
    local ratio = row.answer and number_of(row.answer.gain, key)
    return ratio and 100 * (ratio - 1)
  end
end

-- The results of a library's other algorithms; no columns if no library has any.
local function algorithm_columns(rows)
  for _, row in ipairs(rows) do
    if row.answer and row.answer.algorithms then
      return { { "algorithms", of_answer "algorithms" }, { "fastest algorithm", of_answer "fastest" },
        { "gain over its choice (pct)", gain "median" }, { "gain, 95% low (pct)", gain "low" },
        { "gain, 95% high (pct)", gain "high" } }
    end
  end
  return {}
end

-- The time of an empty kernel, and the differences without it; no columns if the device has none.
local function empty_columns(rows)
  local function without(row)
    local empty = row.answer and row.answer.empty_us
    return difference(empty and row.comparable_us and row.comparable_us - empty, row.profile_us)
  end
  for _, row in ipairs(rows) do
    if row.answer and row.answer.empty_us then
      return { { "empty kernel (us)", of_answer "empty_us" },
        { "Diff without empty kernel (us)", function(of) return (without(of)) end },
        { "Diff without empty kernel (pct)", function(of) return (select(2, without(of))) end } }
    end
  end
  return {}
end

local function measured(rows)
  local columns = {
    { "profile count", function(row) return row.op.time and row.op.time.count end },
    { "profile time sum (us)", function(row) return row.op.time and row.op.time.sum end },
    { "profile_time_sum_cum_pct", function(row) return row.op.share end, "0.00%" },
  }
  for _, kind in ipairs { "warm", "cold" } do
    for _, key in ipairs { "median", "low", "high" } do
      local title = key == "median" and ("%s median (us)"):format(kind)
        or ("%s median, 95%% %s (us)"):format(kind, key)
      columns[#columns + 1] = { title, function(row)
        return row.answer and number_of(row.answer[kind], key)
      end }
    end
    columns[#columns + 1] = { kind .. " samples", function(row)
      return row.answer and row.answer[kind].samples
    end }
  end
  for _, column in ipairs(empty_columns(rows)) do columns[#columns + 1] = column end
  for _, column in ipairs {
    { "replay TFLOP/s", rate }, { "replay device", function(row) return row.answer and row.device end },
    { "library", of_answer "by" }, { "kernel", of_answer "kernel" }, { "computed in", of_answer "computed" },
    table.unpack(algorithm_columns(rows)),
  } do
    columns[#columns + 1] = column
  end
  for _, column in ipairs {
    { "file", function(row) return row.file end },
    { "note", function(row) return row.note ~= "" and row.note or nil end },
  } do
    columns[#columns + 1] = column
  end
  return columns
end

-- ---- sheets --------------------------------------------------------------------------------------------

local function parameter_columns(rows)
  local columns, names = { { "name", function(row) return row.op.name end } }, {}
  for _, row in ipairs(rows) do
    for _, param in ipairs(row.op.params) do ordering.add_new(names, { param.name }) end
  end
  for _, name in ipairs(names) do
    columns[#columns + 1] = { "param: " .. name, function(of)
      local param = sequences.named(of.op.params, name)
      return param and param.value
    end }
  end
  return columns
end

local function sheet_of(kind, rows)
  local columns = sequences.join { documented(kind.word), parameter_columns(rows), measured(rows) }
  local sheet = { name = kind.name, columns = {}, rows = {}, formats = {} }
  for i, column in ipairs(columns) do
    sheet.columns[i] = column[1]
    if column[3] then sheet.formats[column[1]] = column[3] end
    if column[1]:find("%(us%)$") then sheet.formats[column[1]] = "#,##0.000" end
  end
  for i, row in ipairs(rows) do
    local cells = grouping.row()
    for _, column in ipairs(columns) do cells:add(column[2](row)) end
    sheet.rows[i] = cells
  end
  return sheet
end

-- rows = { gemm = { row... }, conv = { row... } }, about = { { what, value }... } -> sheets
function node_sheets.make(rows, about)
  local out = sequences.map(kinds, function(kind)
    return #rows[kind.key] > 0 and sheet_of(kind, rows[kind.key]) or nil
  end)
  out[#out + 1] = { name = "node_replay", columns = { "what", "value" }, rows = about }
  return out
end

return node_sheets
