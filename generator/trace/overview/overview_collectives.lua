-- The section of the page on collectives: the rank that arrives last, and by how much, from the sheets
-- straggler_summary and nccl_summary_implicit_sync; of a single rank its collectives, from nccl_summary_long.
local columns_of = require "trace.overview.overview_columns"
local figure_sources = require "trace.overview.figure_sources"
local long_names = require "trace.overview.long_names"
local quantities = require "base.quantities"
local results_of = require "trace.overview.overview_results"
local sequences = require "base.sequences"
local strips = require "trace.overview.strips"

local overview_collectives = {}

local named, fixed = columns_of.named, columns_of.fixed

local MOST_RANKS, MOST_COLLECTIVES = 64, 10
local INFERRED = "inferred from kernel" -- the title of a column

local function number(title) return function(row) return tonumber(row[title]) end end

local function copies(titles)
  return function(row)
    local out = {}
    for i, title in ipairs(titles) do out[i] = tonumber(row[title]) or long_names.cell(row[title]) end
    return out
  end
end

local function add_stragglers(out, results, sheet)
  local rows = table.move(sheet.rows, 1, math.min(#sheet.rows, MOST_RANKS), 1, {})
  out:html(strips.legend { { class = "communication",
    text = "share of collectives that a rank is the last to enter" } })
  out:html(strips.of(sequences.map(rows, function(row)
    local share = tonumber(row.pct_arrived_last)
    return { name = "rank " .. row.rank, parts = { { class = "communication", from = 0, to = share / 100 } },
      text = ("last %.1f %%, waits %.1f µs"):format(share, tonumber(row.avg_wait_time_us)) }
  end)))
  local titles = { "rank", "times_arrived_last", "pct_arrived_last", "avg_wait_time_us",
    "total_wait_time_us", "times_arrived_first", "collectives" }
  out:table { caption = "Ranks by their waiting: one that is often last and hardly waits keeps the"
      .. " others waiting",
    columns = { "rank", "last (times)", fixed("last (%)", 1),
      fixed("wait for the last rank, mean (µs)", 1),
      fixed("wait, sum (µs)", 1), "first (times)", "collectives" },
    rows = sequences.map(rows, copies(titles)) }
  if #rows < #sheet.rows then
    out:note(("%d of %s"):format(#rows, quantities.counted(#sheet.rows, "rank")))
  end
  figure_sources.add(out, results, { sheet.path })
end

local function add_synchronised(out, results, sheet)
  local rows, count = results_of.largest(sheet, MOST_COLLECTIVES, number "Total comm latency (ms)")
  out:table { caption = "Collectives with most time, over all ranks. Latency: from the last arrival on. Skew:"
      .. " from the first arrival to the last one",
    columns = { named("collective"), "type", { title = "message (MB)", format = "%.4g" }, "count",
      fixed("latency, mean (µs)", 1), fixed("skew, mean (µs)", 1),
      fixed("skew, max (µs)", 1), fixed("bus bandwidth, mean (GB/s)", 3),
      fixed("latency, sum (ms)", 3) },
    rows = sequences.map(rows, copies { "Collective name", "dtype", "In msg size (MB)", "count",
      "comm_latency_mean", "skew in start time_mean", "skew in start time_max", "bus bw (GB/s)_mean",
      "Total comm latency (ms)" }) }
  if #rows < count then out:note(("%d of %d"):format(#rows, count)) end
  figure_sources.add(out, results, { sheet.path })
end

-- The columns of collectives with their durations on single ranks, and their titles in the sheet.
local function duration_columns(sheet)
  local columns = { "rank", "collective", "type", { title = "message (MB)", format = "%.4g" }, "ranks",
    "count", fixed("mean (µs)", 1), fixed("max (µs)", 1), fixed("sum (µs)", 1) }
  local titles = { "rank", "Collective name", "dtype", "In msg size (MB)", "Group size", "count", "dur_mean",
    "dur_max", "dur_sum" }
  if sequences.any(sheet.columns, function(title) return title == INFERRED end) then
    table.insert(columns, 3, named(INFERRED))
    table.insert(titles, 3, INFERRED)
  end
  return columns, titles
end

local function add_durations(out, results, sheet, label)
  local rows, count = results_of.largest(sheet, MOST_COLLECTIVES, number "dur_sum")
  local columns, titles = duration_columns(sheet)
  out:table { caption = "Collectives with most time on " .. label .. ", waiting for other ranks included",
    columns = columns, rows = sequences.map(rows, copies(titles)) }
  if #rows < count then out:note(("%d of %d"):format(#rows, count)) end
  figure_sources.add(out, results, { sheet.path })
end

-- The first trace of a run that has this sheet, and the sheet.
local function first_of_run(results, run, name)
  for _, trace in ipairs(run.traces) do
    local sheet = results:sheet(trace.csvs, name)
    if sheet then return sheet, trace.label end
  end
end

local function add_run(out, results, run)
  local stragglers = results:sheet(run.collectives, "straggler_summary")
  local synchronised = results:sheet(run.collectives, "nccl_summary_implicit_sync")
  if run.name then out:heading(run.name) end
  if stragglers then
    add_stragglers(out, results, stragglers)
  elseif #run.traces > 1 and run.collectives then
    out:missing("order of arrival: no collective has comparable times on several ranks")
  elseif #run.traces > 1 then
    out:missing("order of arrival: ranks were not compared; gentables trace pipeline compares them")
  end
  if synchronised then return add_synchronised(out, results, synchronised) end
  local over_ranks = results:sheet(run.collectives, "nccl_summary_long")
  if over_ranks then return add_durations(out, results, over_ranks, "all ranks") end
  local sheet, label = first_of_run(results, run, "nccl_summary_long")
  if sheet then add_durations(out, results, sheet, label) end
end

-- Whether a run has collectives.
local function has_any(run)
  return results_of.has(run.collectives, "nccl_long") or sequences.any(run.traces, function(trace)
    return results_of.has(trace.csvs, "nccl_summary_long")
  end)
end

-- Adds the section, unless no trace has a collective.
function overview_collectives.add(out, results, runs)
  local with = sequences.filter(runs, has_any)
  if #with == 0 then return end
  local is_single = sequences.all(runs, function(run) return #run.traces < 2 end)
  out:section(is_single and "Collectives" or "Who arrives last")
  for _, run in ipairs(with) do add_run(out, results, run) end
end

return overview_collectives
