-- The section of the page on operations: those with most kernel time, from the sheets unified_perf_summary of
-- the traces; over ranks from the sheets of families of ops, and the time by purpose from grouped_breakdown.
local columns_of = require "trace.overview.overview_columns"
local figure_sources = require "trace.overview.figure_sources"
local long_names = require "trace.overview.long_names"
local ordering = require "base.ordering"
local results_of = require "trace.overview.overview_results"
local sequences = require "base.sequences"
local strips = require "trace.overview.strips"

local overview_operations = {}

local named, fixed = columns_of.named, columns_of.fixed

local MOST_ROWS, MOST_TRACES = 12, 16
local TIME, SHARE = "Kernel Time (µs)_sum", "Percentage (%)"
local FAMILIES = { "gemm", "conv", "attn", "un_elemwise", "bin_elemwise" } -- over ranks
local rates = { { "TFLOPS/s_mean", "TFLOP/s" }, { "TB/s_mean", "TB/s" }, { "FLOPS/Byte", "FLOP/byte" } }

local function number(title) return function(row) return tonumber(row[title]) end end

-- Columns on the distance from the roofline, if the sheet has them.
local function roofline_columns(sheet)
  return sequences.filter(sheet.columns, function(title) return title:lower():find "roofline" ~= nil end)
end

-- A number, or the word of what bounds an op; nil: the cell is empty.
local function roofline_cell(text) return tonumber(text) or text ~= "" and text or nil end

-- Adds these columns to those of a table, and their titles.
local function add_rooflines(columns, titles, rooflines)
  for _, title in ipairs(rooflines) do
    titles[#titles + 1] = title
    columns[#columns + 1] = title:find "Bound" and title:lower() or fixed(title:lower(), 1)
  end
end

-- The bars of shares of time.
local function add_shares(out, rows, name, share, text)
  local largest = share(rows[1]) or 0
  if largest <= 0 then return end
  out:html(strips.of(sequences.map(rows, function(row)
    return { name = row[name], text = text(row), parts = { { class = "computation", from = 0,
      to = (share(row) or 0) / largest } } }
  end)))
end

local function operations_table(sheet, rows)
  local rooflines = roofline_columns(sheet)
  local columns = { named("op"), "category", named("arguments"), "count", fixed("kernel time (µs)", 1),
    fixed("share (%)", 2) }
  local titles = { "name", "op category", "Input Dims", "operation_count", TIME, SHARE }
  for _, rate in ipairs(rates) do
    titles[#titles + 1] = rate[1]
    columns[#columns + 1] = fixed(rate[2], 2)
  end
  add_rooflines(columns, titles, rooflines)
  return { columns = columns, rows = sequences.map(rows, function(row)
    local out = {}
    for i, title in ipairs(titles) do
      out[i] = i > 3 and roofline_cell(row[title]) or long_names.cell(row[title])
    end
    return out
  end) }
end

local function add_trace(out, results, sheet)
  local rows, count = results_of.largest(sheet, MOST_ROWS, number(TIME))
  out:table(operations_table(sheet, rows))
  if #rows < count then out:note(("%d of %d; shares are of the kernel time of all"):format(#rows, count)) end
  figure_sources.add(out, results, { sheet.path })
end

local function add_categories(out, results, sheet)
  add_shares(out, sheet.rows, "op category", number(SHARE), function(row)
    return ("%.3f ms, %.1f %%"):format(tonumber(row.total_direct_kernel_time_ms), tonumber(row[SHARE]))
  end)
  figure_sources.add(out, results, { sheet.path })
end

-- The first trace is open, the others are closed.
local function add_run(out, results, run)
  local with = sequences.filter(run.traces, function(trace)
    return results:sheet(trace.csvs, "unified_perf_summary")
  end)
  if #with == 0 then return end
  if run.name then out:heading(run.name) end
  for i, trace in ipairs(table.move(with, 1, math.min(#with, MOST_TRACES), 1, {})) do
    out:html(('<details%s><summary>%s</summary>\n'):format(i == 1 and " open" or "",
      out.escape(results_of.label(run, trace))))
    local categories = i == 1 and results:sheet(trace.csvs, "ops_summary_by_category")
    if categories then add_categories(out, results, categories) end
    add_trace(out, results, results:sheet(trace.csvs, "unified_perf_summary"))
    out:html "</details>\n"
  end
end

-- The ops of all families over ranks with most time: { sheet, row }...
local function of_families(results, run)
  local all = sequences.join(FAMILIES, function(name)
    local sheet = results:sheet(run.batch, name)
    return sequences.map(sheet and sheet.rows or {}, function(row)
      return { name = name, sheet = sheet, row = row }
    end)
  end)
  ordering.falling(all, function(one) return tonumber(one.row[TIME]) or 0 end)
  return table.move(all, 1, math.min(#all, MOST_ROWS), 1, {})
end

-- "M 512, N 64" of an op's columns `param: ...`.
local function parameters(sheet, row)
  return table.concat(sequences.map(sheet.columns, function(title)
    local name = title:match "^param: (%u[%w_]*)$" or title:match "^param: (.*shape.*)$"
    return name and row[title] ~= "" and ("%s %s"):format(name, row[title]) or nil
  end), ", ")
end

-- The op with most time over the ranks of a run: { name (with its parameters), time_us, path of its sheet };
-- nil: there is none.
function overview_operations.most(results, run)
  local one = of_families(results, run)[1]
  if not one then return nil end
  return { name = ("%s (%s)"):format(long_names.short(one.row.name), parameters(one.sheet, one.row)),
    time_us = tonumber(one.row[TIME]) or 0, path = one.sheet.path }
end

local function add_over_ranks(out, results, run)
  local breakdown, rows = results:sheet(run.batch, "grouped_breakdown"), of_families(results, run)
  if breakdown then
    local used = results_of.purposes(breakdown)
    out:heading "Time by purpose, mean over ranks"
    if #used > 0 then
      add_shares(out, used, "Group", number "Time (s)", function(row)
        return ("%.3f ms"):format(1000 * tonumber(row["Time (s)"]))
      end)
    end
    figure_sources.add(out, results, { breakdown.path })
  end
  if #rows == 0 then return end
  out:heading "Ops with most time, over all ranks"
  local columns = { named("op"), named("parameters"), fixed("kernel time (µs)", 1), fixed("TFLOP/s", 2),
    fixed("TB/s", 2), "sheet" }
  local titles = {}
  add_rooflines(columns, titles, roofline_columns(rows[1].sheet))
  out:table { columns = columns, rows = sequences.map(rows, function(one)
    local row = one.row
    local cells = { long_names.cell(row.name), long_names.cell(parameters(one.sheet, row)),
      tonumber(row[TIME]), tonumber(row["TFLOPS/s_mean"]), tonumber(row["TB/s_mean"]), one.name }
    for i, title in ipairs(titles) do cells[6 + i] = roofline_cell(row[title]) end
    return cells
  end) }
  figure_sources.add(out, results, sequences.distinct(sequences.map(rows, function(one)
    return one.sheet.path
  end)))
end

-- Adds the section; roofline: of overview_page.write.
function overview_operations.add(out, results, runs, roofline)
  out:section("Operations", { note = "Kernel time by op, without communication. TFLOP/s and TB/s are those of"
    .. " the performance model; empty: the op has none. " .. (roofline or "") })
  local before = #out.body
  for _, run in ipairs(runs) do
    if run.batch then add_over_ranks(out, results, run) else add_run(out, results, run) end
  end
  if #out.body == before then out:missing "ops: no trace has ops that launched kernels" end
end

return overview_operations
