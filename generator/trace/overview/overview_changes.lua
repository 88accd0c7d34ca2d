-- The section of the page on another run: the time line and the ops that changed, from the sheets of
-- trace/compare/differences.lua, with the other run as base.
local columns_of = require "trace.overview.overview_columns"
local figure_sources = require "trace.overview.figure_sources"
local long_names = require "trace.overview.long_names"
local results_of = require "trace.overview.overview_results"
local sequences = require "base.sequences"
local side_by_side = require "pages.side_by_side"

local overview_changes = {}

local named, fixed = columns_of.named, columns_of.fixed

local MOST_OPS, MOST_TRACES, NOISE = 8, 16, 0.01
local TIME = "total_direct_kernel_time_ms"
local compared = { { "total_time", "total" }, { "computation_time", "computation" },
  { "exposed_comm_time", "exposed communication" }, { "idle_time", "idle" } }

local function base_of(against, title) return ("%s::%s"):format(against.base, title) end
local function value_of(against, title) return ("%s::%s"):format(against.label, title) end
local function difference_of(against, title) return ("%s__%s_diff"):format(title, against.label) end

-- The cell of a change in percent: of one from 0 "new"; nil without both values or a change.
local function change(against, row, title)
  local percent = tonumber(row[("%s__%s_pct"):format(title, against.label)])
  if not percent then
    local is_new = tonumber(row[base_of(against, title)]) == 0
      and (tonumber(row[value_of(against, title)]) or 0) > 0
    return is_new and { text = "new", class = "worse" } or nil
  end
  local share = percent / 100
  return { text = side_by_side.signed_percent(share), value = percent,
    class = share > NOISE and "worse" or share < -NOISE and "better" or nil }
end

-- The rows of the compared time lines by type; nil: they were not compared.
function overview_changes.time_line(results, against)
  local sheet = against and results:sheet(against.csvs, "gpu_timeline")
  if not sheet then return nil end
  local out = { path = sheet.path }
  for _, row in ipairs(sheet.rows) do out[row.type] = row end
  return out
end

-- The change of the total time of a trace, in percent; nil: unknown.
function overview_changes.total(results, against)
  local rows = overview_changes.time_line(results, against)
  local row = rows and rows.total_time
  return row and tonumber(row[("time ms__%s_pct"):format(against.label)]), rows and rows.path
end

-- `traces`: { label, against }...
local function add_time_lines(out, results, traces)
  local columns, rows, paths = { "trace", "against" }, {}, {}
  for _, column in ipairs(compared) do
    columns[#columns + 1] = fixed(column[2] .. ", before (ms)", 3)
    columns[#columns + 1] = fixed("now (ms)", 3)
    columns[#columns + 1] = "change"
  end
  for _, trace in ipairs(traces) do
    local against, lines = trace.against, overview_changes.time_line(results, trace.against)
    if lines then
      local row = { trace.label, against.base }
      for i, column in ipairs(compared) do
        local values = lines[column[1]] or {}
        row[3 * i] = tonumber(values[base_of(against, "time ms")])
        row[3 * i + 1] = tonumber(values[value_of(against, "time ms")])
        row[3 * i + 2] = change(against, values, "time ms")
      end
      rows[#rows + 1], paths[#paths + 1] = row, lines.path
    end
  end
  out:table { columns = columns, rows = rows }
  figure_sources.add(out, results, paths)
end

local function add_ops(out, results, trace)
  local against = trace.against
  local sheet = results:sheet(against.csvs, "ops_summary_common")
  local rows = results_of.largest(sheet, MOST_OPS, function(row)
    return math.abs(tonumber(row[difference_of(against, TIME)]) or 0)
  end)
  rows = sequences.filter(rows, function(row) return tonumber(row[difference_of(against, TIME)]) ~= 0 end)
  if #rows == 0 then
    out:note "No op that both runs have takes another time."
  else
    out:table { caption = "Ops with the largest change",
      columns = { named("op"), fixed("before (ms)", 3), fixed("now (ms)", 3),
        { title = "difference (ms)", format = "%+.3f" }, "change" },
      rows = sequences.map(rows, function(row)
        return { long_names.cell(row.name), tonumber(row[base_of(against, TIME)]),
          tonumber(row[value_of(against, TIME)]),
          tonumber(row[difference_of(against, TIME)]), change(against, row, TIME) }
      end) }
    figure_sources.add(out, results, { sheet.path })
  end
  for _, one in ipairs { { "ops_summary_only_variant_", "New ops", against.label },
    { "ops_summary_only_baseline_", "Ops that only the other run has", against.base } } do
    local only = results:sheet(against.csvs, one[1] .. against.label)
    if only then
      local title = one[3] .. "::" .. TIME
      local first = results_of.largest(only, MOST_OPS, function(row) return tonumber(row[title]) end)
      out:table { caption = one[2], columns = { named("op"), fixed("kernel time (ms)", 3) },
        rows = sequences.map(first, function(row)
          return { long_names.cell(row.name), tonumber(row[title]) }
        end) }
      figure_sources.add(out, results, { only.path })
    end
  end
end

-- Adds the section, if any trace was compared.
function overview_changes.add(out, results, runs)
  local traces = sequences.join(runs, function(run)
    return sequences.map(run.traces, function(trace)
      return overview_changes.time_line(results, trace.against)
        and { label = results_of.label(run, trace), against = trace.against } or nil
    end)
  end)
  if #traces == 0 then return end
  out:section("What changed", { note = "Against another run; a change of more than 1 % is marked." })
  add_time_lines(out, results, traces)
  for i, trace in ipairs(table.move(traces, 1, math.min(#traces, MOST_TRACES), 1, {})) do
    out:html(('<details%s><summary>%s against %s</summary>\n'):format(i == 1 and " open" or "",
      out.escape(trace.label), out.escape(trace.against.base)))
    add_ops(out, results, trace)
    out:html "</details>\n"
  end
end

return overview_changes
