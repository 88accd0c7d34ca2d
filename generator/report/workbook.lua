-- The workbook of a report: the summary, the table cell by cell, the rows, the classes of equal bits, and the
-- reasons for missing times. pages/sheets.lua writes it.
--
--   workbook.write(model.load("tables/host", "host"), "host.xlsx")   -> notes | nil, message
local columns_of_files = require "lists.columns"
local formats = require "formats.list"
local model = require "formats.model"
local rank_placement = require "lists.rank_placement"
local sequences = require "base.sequences"
local sheets = require "pages.sheets"
local summary = require "formats.summary"

local workbook = {}

local MICROSECONDS, PERCENT, COUNT = "#,##0.000", "0.0%", "#,##0"
local SHAKY, SURE = 0xF1A340, 0xFFFFFF
local FAST, SLOW = 0xFFFFFF, 0xFB6A4A
local size_of_ranks = rank_placement.size_of

-- ---- the sheets -------------------------------------------------------------------------------

local function shares_in_words(tally)
  local words = sequences.map(tally.shares, function(share)
    return ("%s %.1f %%"):format(share.name, 100 * share.count / (tally.cells - tally.unmeasured))
  end)
  return table.concat(words, ", ")
end

-- One line for each TP size, dtype, op, mode and fusion.
local function summary_sheet(source, blocks)
  local rows = {}
  for _, block in ipairs(blocks) do
    for _, fusion in ipairs(block.by_fusion) do
      local tally, most = fusion.tally, fusion.tally.shares[1]
      rows[#rows + 1] = { source.arch, size_of_ranks(block), block.dtype, block.op, block.mode, fusion.name,
        tally.cells, tally.unmeasured, tally.certain, tally.tie, tally.uncertain, tally.oversubscribed,
        most and most.name,
        most and most.count / (tally.cells - tally.unmeasured), shares_in_words(tally), tally.margin,
        tally.least_margin, tally.expected_loss, tally.worst_loss, tally.bound }
    end
  end
  return { name = "summary", rows = rows, columns = { "arch", "TP", "dtype", "op", "mode", "fusion", "cells",
    "unmeasured", "certain", "ties", "uncertain", "oversubscribed", "best in most cells", "in how many",
    "best in how many cells", "margin, median", "margin, least", "expected loss, mean", "worst loss, most",
    "share of the bound, median" },
    formats = { ["in how many"] = PERCENT, ["margin, median"] = PERCENT, ["margin, least"] = PERCENT,
      ["expected loss, mean"] = PERCENT, ["worst loss, most"] = PERCENT,
      ["share of the bound, median"] = PERCENT, cells = COUNT },
    colours = { ["margin, median"] = { SHAKY, SURE }, ["worst loss, most"] = { FAST, SLOW } } }
end

local table_columns = { "arch", "TP", "dtype", "op", "mode", "fusion", "hidden size", "tokens", "strategy",
  "time (µs)", "runner-up", "margin", "state", "confidence", "expected loss", "worst loss (µs)",
  "share of the bound", "ranks" }

local function table_row(source, block, fusion, h, t)
  local cell = fusion.rows[h][t]
  local row = { source.arch, size_of_ranks(block), block.dtype, block.op, block.mode, fusion.name,
    block.hidden_sizes[h], block.num_tokens[t] }
  if not cell then
    row[9] = "unmeasured"
    return row
  end
  row[9], row[10], row[11], row[12] = cell.strategy, cell.time_us, cell.runner_up, cell.margin
  row[13], row[14], row[15], row[16] = cell.state, cell.confidence, cell.expected_loss, cell.worst_loss_us
  row[17] = cell.bound_us and cell.bound_us / cell.time_us
  row[18] = cell.placement
  row[19] = cell.predicted and "predicted" or cell.derived and "derived" or "measured"
  row[20], row[21] = cell.low_us, cell.high_us
  return row
end

-- One line for each cell. Tables with predicted choices have further columns.
local function table_sheet(source, blocks)
  local rows, columns = {}, table.move(table_columns, 1, #table_columns, 1, {})
  if summary.totals(blocks).predicted > 0 then
    for _, name in ipairs { "basis", "low (µs)", "high (µs)" } do columns[#columns + 1] = name end
  end
  for _, block in ipairs(blocks) do
    for _, fusion in ipairs(block.by_fusion) do
      for h = 1, #block.hidden_sizes do
        for t = 1, #block.num_tokens do
          rows[#rows + 1] = table.move(table_row(source, block, fusion, h, t), 1, #columns, 1, {})
        end
      end
    end
  end
  return { name = "table", rows = rows, columns = columns,
    formats = { ["time (µs)"] = MICROSECONDS, ["low (µs)"] = MICROSECONDS, ["high (µs)"] = MICROSECONDS,
      margin = PERCENT, confidence = PERCENT,
      ["expected loss"] = PERCENT, ["worst loss (µs)"] = MICROSECONDS,
      ["share of the bound"] = PERCENT },
    colours = { ["time (µs)"] = { FAST, SLOW }, margin = { SHAKY, SURE }, confidence = { SHAKY, SURE } } }
end

-- { title, key, number format }: times before counts.
local row_columns = {
  { "tokens", "num_tokens" },
  { "hidden size", "hidden_size" },
  { "size (bytes)", "size", COUNT },
  { "strategy", "strategy" },
}
for _, whole in ipairs { false, true } do
  for _, column in ipairs(columns_of_files) do
    if column.title and (column.whole or false) == whole then
      table.insert(row_columns, { column.title, column.key, whole and COUNT or MICROSECONDS })
    end
  end
end
table.insert(row_columns, { "accumulate", "accumulate" })
table.insert(row_columns, { "ranks", "placement" })

local row_keys = sequences.field(row_columns, 2)

local function row_of(slice, columns, i)
  local row = { size_of_ranks(slice), slice.dtype, slice.op, slice.mode, slice.fusion }
  for c, column in ipairs(row_columns) do row[c + 5] = columns[column[2]][i] or nil end
  return row
end

-- One line for each row of the files, slice by slice, so that half a million rows are never in memory at
-- once.
local function rows_sheet(source)
  local titles, number_formats = { "TP", "dtype", "op", "mode", "fusion" }, {}
  for _, column in ipairs(row_columns) do
    titles[#titles + 1] = column[1]
    number_formats[column[1]] = column[3]
  end
  return { name = "rows", columns = titles, formats = number_formats,
    colours = { ["time (µs)"] = { FAST, SLOW } },
    rows = function()
      local slices, index, columns, i = source.rows:slices(), 0, nil, 0
      return function()
        while not columns or i == columns.count do
          index, i = index + 1, 0
          if not slices[index] then return nil end
          columns = source.rows:slice(slices[index], row_keys)
        end
        i = i + 1
        return row_of(slices[index], columns, i)
      end
    end }
end

-- The cells of the spec without a time, or nil if all have one.
local function missing_sheet(source)
  local rows = sequences.map(summary.without_time(source), function(group)
    return { group.tp, group.cells, table.concat(group.strategies, ", "), group.reason }
  end)
  if #rows == 0 then return nil end
  return { name = "without time", rows = rows,
    columns = { "TP", "cells × strategies", "strategies", "reason" } }
end

-- The classes of equal bits, or nil if no row has bits.
local function numerics_sheet(source)
  local rows = sequences.map((summary.numerics(source)), function(class)
    local of = class.slice
    return { source.arch, size_of_ranks(of), of.dtype, of.op, of.mode, of.fusion,
      table.concat(class.names, ", "), class.shapes, class.of, class.cost, class.worst }
  end)
  if #rows == 0 then return nil end
  return { name = "numerics", rows = rows, columns = { "arch", "TP", "dtype", "op", "mode", "fusion",
    "class of equal bits", "shapes", "of", "costs, mean", "costs, at worst" },
    formats = { ["costs, mean"] = PERCENT, ["costs, at worst"] = PERCENT, shapes = COUNT, of = COUNT },
    colours = { ["costs, mean"] = { FAST, SLOW } } }
end

-- The sheets of a source (of model.load).
function workbook.sheets(source)
  local canonical = model.for_format(source, formats.find("table")).canonical
  local blocks = summary.blocks(canonical)
  local list = { summary_sheet(source, blocks), table_sheet(source, blocks), rows_sheet(source) }
  list[#list + 1] = numerics_sheet(source)
  list[#list + 1] = missing_sheet(source)
  return list
end

-- Writes them into one workbook. Returns the values of sheets.write_xlsx.
function workbook.write(source, path) return sheets.write_xlsx(path, workbook.sheets(source)) end

return workbook
