-- The data of the scripts of report.html: all numbers of one arch, by columns. A list of numbers is one text,
-- with spaces between them, and empty between two spaces for a missing one; a list of strategies is one
-- letter for each cell, "." without a strategy. Cells are in the order hidden size, then tokens, as in
-- table.csv.
local derive = require "choose.derive"
local formats = require "formats.list"
local lists = require "lists.lists"
local rank_placement = require "lists.rank_placement"
local lookup_rule = require "core.lookup_rule"
local model = require "formats.model"
local predictions = require "base.lazy" "predict.predictions"
local render = require "formats.render"
local sequences = require "base.sequences"
local summary = require "formats.summary"

local report_data = {}

-- A letter for each strategy, by its index in the list of strategies: a to z, A to Z, then other characters
-- of one UTF-16 unit.
local letters, index_in_list = {}, {}
for index, strategy in ipairs(lists.strategies) do
  local code = index <= 26 and 96 + index or index <= 52 and 38 + index or 0x100 + index
  letters[strategy.name] = utf8.char(code)
  index_in_list[strategy.name] = index
end

-- A number as in table.csv (four decimals, or nine digits), without zeros at its ends.
local short -- (value)
function short(value)
  if not value then return "" end
  if math.abs(value) >= 1e11 or (value ~= 0 and math.abs(value) < 5e-5) then
    return ("%.9g"):format(value)
  end
  if value < 0 then return "-" .. short(-value) end
  local scaled = value * 1e4
  local whole = math.floor(scaled)
  local rest = scaled - whole
  if rest > 0.5 or (rest == 0.5 and whole % 2 == 1) then whole = whole + 1 end
  whole = math.tointeger(whole)
  if whole % 10000 == 0 then return tostring(whole // 10000) end
  local before = whole // 10000
  return (before > 0 and before or "") .. (".%04d"):format(whole % 10000):gsub("0+$", "")
end

-- A list of numbers, false or nil for missing ones, as one text; nil if all are missing.
local function column(values, count)
  local out, any = {}, false
  for i = 1, count do
    out[i] = short(values[i])
    any = any or out[i] ~= ""
  end
  return any and table.concat(out, " ") or nil
end

-- ---- the strategies' times --------------------------------------------------------------------

local columns_of_rows = { t = "time_us", l = "low_us", h = "high_us", b = "bound_us" }

-- The lists of a strategy; made by the first call.
local function lists_of(all, strategy)
  local key = letters[strategy]
  all[key] = all[key] or { t = {}, l = {}, h = {}, b = {} }
  return all[key]
end

-- Whether a record of derived times (choose/derive.lua) is of this fusion of a block.
local function is_of(record, block, fusion)
  return not block.sizes_only and record.fusion == fusion and record.world_size == block.world_size
    and (record.nodes or 1) == block.nodes and record.dtype == block.dtype
    and record.op == block.op and record.mode == block.mode
    and (record.splits or "") == (block.splits or "")
end

-- Enters the predicted times of a fusion of a block, and their places into `places`, by letter.
local function enter_predicted(source, block, fusion, all, places, index_of)
  for _, record in ipairs(predictions.times(source)) do
    local at = is_of(record, block, fusion) and index_of(record.hidden_size, record.num_tokens)
    if at then
      local of = lists_of(all, record.strategy)
      of.t[at], of.l[at], of.h[at] = record.time_us, record.low_us, record.high_us
      table.insert(sequences.at(places, letters[record.strategy]), at - 1)
    end
  end
end

-- [letter] = { t =, l =, h =, b =, d =, o =, p = } of one fusion of a block: time, interval, bound; of
-- strategies with interpolated times also the places of these in the list, from 0, and the measured shapes
-- between the grid's lines, each as tokens and hidden size; of those with predicted times their places.
local function times_of(source, block, fusion)
  local rows = source.rows:slice { world_size = block.world_size, nodes = block.nodes, dtype = block.dtype,
    op = block.op, mode = block.mode, fusion = fusion, splits = block.splits or "",
    sizes_only = block.sizes_only }
  local hidden, tokens = sequences.indices(block.hidden_sizes), sequences.indices(block.num_tokens)
  local all, derived, between, predicted, width = {}, {}, {}, {}, #block.num_tokens
  local function index_of(hidden_size, num_tokens) -- nil between the grid's lines
    local h, t = hidden[hidden_size], tokens[num_tokens]
    return h and t and (h - 1) * width + t
  end
  for i = 1, rows.count do
    local key, at = letters[rows.strategy[i]], index_of(rows.hidden_size[i], rows.num_tokens[i])
    local of = lists_of(all, rows.strategy[i])
    for name, from in pairs(at and columns_of_rows or {}) do of[name][at] = rows[from][i] end
    if not at then
      table.insert(sequences.at(between, key), ("%d %d"):format(rows.num_tokens[i], rows.hidden_size[i]))
    end
  end
  for _, record in ipairs(derive.of_source(source)) do
    local at = is_of(record, block, fusion) and index_of(record.hidden_size, record.num_tokens)
    if at then
      lists_of(all, record.strategy).t[at] = record.time_us
      table.insert(sequences.at(derived, letters[record.strategy]), at - 1)
    end
  end
  enter_predicted(source, block, fusion, all, predicted, index_of)
  local out, count = {}, #block.hidden_sizes * width
  for key, of in pairs(all) do
    out[key] = {}
    for name, values in pairs(of) do out[key][name] = column(values, count) end
    if derived[key] then
      out[key].d = table.concat(derived[key], " ")
      out[key].o = between[key] and table.concat(between[key], " ")
    end
    out[key].p = predicted[key] and table.concat(predicted[key], " ")
  end
  return out
end

-- ---- the table --------------------------------------------------------------------------------

-- The values of rows in one list, such as the cells of a fusion; false for unmeasured ones.
-- A letter for each value of a list: letter_of(value), or "." without one.
local function in_letters(list, letter_of)
  return table.concat(sequences.map(list, function(value) return value and letter_of(value) or "." end))
end

local function names_as_letters(cells, field)
  return in_letters(cells, function(cell) return letters[cell[field]] end)
end

local function field_of(cells, field)
  return column(sequences.map(cells, function(cell) return cell and cell[field] or false end), #cells)
end

-- The choices of the incumbent ([h][t] = name or false) as letters; nil without an incumbent.
local function incumbent(choices)
  return choices and in_letters(sequences.join(choices), function(name) return letters[name] end)
end

-- The first letters of the cells' states; "." where there is none.
local function states_of(cells)
  return in_letters(cells, function(cell) return cell.state and cell.state:sub(1, 1) end)
end

local function fusion_of(source, block, fusion)
  local cells = sequences.join(fusion.rows)
  return { name = fusion.name, best = names_as_letters(cells, "strategy"),
    second = names_as_letters(cells, "runner_up"), margin = field_of(cells, "margin"),
    confidence = field_of(cells, "confidence"), expected = field_of(cells, "expected_loss"),
    worst = field_of(cells, "worst_loss"), states = states_of(cells),
    old = incumbent(fusion.old), rows = times_of(source, block, fusion.name) }
end

-- ---- the lookups of other programs ------------------------------------------------------------

-- The borders and cells of the C header, as in its template.
local function header_of(source)
  local view = model.for_format(source, formats.find "c")
  local tp_tables = sequences.map(view.all_tables, function(tp_table)
    local fusions = {}
    for _, fusion in ipairs(tp_table.fusions) do
      fusions[fusion.name] = in_letters(sequences.join(fusion.rows), function(winner)
        return letters[winner.name]
      end)
    end
    return { tp = rank_placement.size(tp_table.tp, tp_table.nodes),
      hidden = tp_table.hidden_sizes, tokens = tp_table.num_tokens,
      hidden_borders = lookup_rule.borders(tp_table.hidden_sizes),
      token_borders = lookup_rule.borders(tp_table.num_tokens), mode = tp_table.mode, fusions = fusions }
  end)
  if #tp_tables == 0 then return nil end
  return { tpTables = tp_tables, fallback = letters[view.fallback], axes = source.axes }
end

-- TensorRT-LLM's table: the numbers of the rendered file, in its order [tp][fusion][hidden][tokens].
local function trtllm_of(source)
  local format = formats.find "trtllm"
  if not formats.is_for(format, source.arch_row) then return nil end
  if #model.for_format(source, format).tp_tables == 0 then return nil end
  local by_number, cells = lists.trtllm_strategies(), {}
  for row in render.text(source, format):gmatch("{([%d,]+)}") do
    for number in row:gmatch("%d+") do cells[#cells + 1] = letters[by_number[tonumber(number)]] end
  end
  local fusions = sequences.field(lists.trtllm_fusions(), "name")
  local grid = lists.trtllm_grid
  return { tp = grid.tp, fusions = fusions, hidden = grid.hidden_sizes, tokens = grid.num_tokens,
    cells = table.concat(cells), fallback = letters.NCCL_SYMMETRIC }
end

-- ---- all of it --------------------------------------------------------------------------------

-- letter -> { name, mark, help, place, never } of strategies with a time, or in a table, in `archs`
-- (of report_data.of).
function report_data.strategies(archs)
  local used = {}
  for _, arch in ipairs(archs) do
    for _, block in ipairs(arch.blocks) do
      for _, fusion in ipairs(block.fusions) do
        for letter in pairs(fusion.rows) do used[letter] = true end
        for _, code in utf8.codes(fusion.old or "") do used[utf8.char(code)] = true end
      end
    end
    if arch.header then used[arch.header.fallback] = true end
    for _, code in utf8.codes(arch.trtllm and arch.trtllm.cells or "") do used[utf8.char(code)] = true end
  end
  local out = {}
  for index, strategy in ipairs(lists.strategies) do
    local letter = letters[strategy.name]
    if used[letter] then
      out[letter] = { name = strategy.name, mark = strategy.mark, help = strategy.help, place = index,
        never = strategy.candidate == false or nil }
    end
  end
  return out
end

-- The CSS class of a strategy.
function report_data.class(name) return "s" .. index_in_list[name] end

-- The op of a block, with its splits and ".by.bytes", as in the page's state.
local function op_of(block)
  return block.op .. (block.splits and "." .. block.splits or "") .. (block.sizes_only and ".by.bytes" or "")
end

-- The id of a table on the page, which is also the page's state for it.
function report_data.id(arch, block, fusion)
  local tp = rank_placement.size_of(block)
  return ("arch=%s&tp=%s&fusion=%s&data=%s.%s.%s"):format(arch, tp, fusion, block.dtype,
    op_of(block), block.mode)
end

-- busbw over algbw; nil for an op without a bus bandwidth.
function report_data.bus_factor(block)
  local op = lists.find("ops", block.op)
  return op.bus_factor and op.bus_factor(block.world_size)
end

-- One arch: `source` (of model.load), and its canonical table's `blocks` (of summary.blocks); their fusions
-- may have the incumbent's choices as `old`.
function report_data.of(source, blocks)
  local out = sequences.map(blocks, function(block)
    local fusions = sequences.map(block.by_fusion, function(of) return fusion_of(source, block, of) end)
    -- By bytes, tokens are bytes, and there is one hidden size.
    return { tp = rank_placement.size_of(block), dtype = block.dtype, op = op_of(block), mode = block.mode,
      bytes = lists.find("dtypes", block.dtype).bytes,
      hidden = block.sizes_only and { 1 } or block.hidden_sizes, tokens = block.num_tokens, fusions = fusions,
      bus = block.sizes_only and report_data.bus_factor(block) or nil }
  end)
  return { name = source.arch, blocks = out, header = header_of(source), trtllm = trtllm_of(source),
    uncertain = { with = summary.uncertain_in_words(true), without = summary.uncertain_in_words(false) } }
end

return report_data
