-- The page of a sweep: findings in words, then the numbers, pictures of varying GEMMs, and the paths of all
-- files. It only shows: store.lua has the times, trace pipeline made the rest.
local chart = require "workload.chart"
local csv = require "codec.csv"
local file = require "core.file"
local page = require "pages.page"
local sequences = require "base.sequences"
local variance_plots = require "trace.gemm.variance_plots"
local findings = require "workload.findings"

local sweep_page = {}

local ANALYSIS = "tracelens_analysis"
local MOST_ROWS = 20 -- of GEMMs that vary

-- ---- words -------------------------------------------------------------------------------------

local function add_words(out, sweep, measured)
  out:section("Findings")
  out:text(findings.best(measured))
  out:note(findings.LAUNCHES)
  local results = sequences.field(measured, "result")
  out:text(findings.why(results, sweep.settings.ranks))
  local unit, length = findings.unit_of(results)
  out:figures { { title = ("A step: GEMMs alone, each collective waited for, overlapped (%s; %s)"):format(
    unit, findings.INTERVALS), markup = chart.steps(measured, length) } }
  for _, entry in ipairs(measured) do
    local result = entry.result
    out:heading(findings.name(entry))
    out:text(findings.times(result))
    out:text(findings.hidden(result))
    out:text(findings.cost(result) .. " " .. findings.tracing(result))
    local used = findings.used(entry)
    if used then out:text(used) end
  end
end

local function add_failures(out, sweep)
  for _, entry in ipairs(sweep.entries) do
    if not entry.result then out:missing(("%s: %s"):format(findings.name(entry), entry.reason)) end
  end
end

-- ---- numbers -----------------------------------------------------------------------------------

local function interval(summary, scale, format)
  local text = findings.interval(summary, scale, format)
  return text and { text = text, value = summary.low }
end

-- The unit of tables of these entries, and its length in us.
local function unit_of(measured) return findings.unit_of(sequences.field(measured, "result")) end

local function add_steps(out, measured)
  local unit, length = unit_of(measured)
  local rows = {}
  for i, entry in ipairs(measured) do
    local result, ratios = entry.result, entry.result.ratios
    local hides = findings.has_hidden(result)
    rows[i] = { entry.threads, entry.channels, result.used.threads, result.used.channels,
      result.times.gemms.median / length, result.times.serial.median / length,
      result.times.overlapped.median / length, interval(result.times.overlapped, 1 / length, "%.2f"),
      hides and 100 * ratios.hidden.median or nil, hides and interval(ratios.hidden, 100, "%.0f") or nil,
      ratios.overlapped_to_serial.median, 100 * ratios.tracing.median, result.times.overlapped.samples }
  end
  out:section("Steps", { note = unit .. ", medians of the slowest rank of each step; " .. findings.INTERVALS
    .. ". hidden = (serial − overlapped) / (serial − GEMMs alone), of steps that follow each other; empty"
    .. " if serial and GEMMs alone differ by noise only, or if numbers contradict each other" })
  out:table { columns = { "threads", "channels", "threads used", "channels used",
    { title = "GEMMs alone", format = "%.2f" }, { title = "serial", format = "%.2f" },
    { title = "overlapped", format = "%.2f" }, "interval", { title = "hidden (%)", format = "%.0f" },
    "interval (%)", { title = "overlapped / serial", format = "%.3f" },
    { title = "tracing (%)", format = "%.1f" }, "steps" }, rows = rows }
end

-- The table of ranks, by backend: fields of a rank with their titles, and a note on them.
local RANKS = {
  host = { { "gemm_us", "GEMMs" }, { "gemm_alone_us", "alone" }, { "gemm_cpu_us", "on a processor" },
    { "communication_us", "communication" }, { "communication_cpu_us", "on a processor" },
    { "await_us", "waiting" },
    note = " of an overlapped step, medians: intervals, and the part of them in which the thread ran on a"
      .. " processor; alone: GEMMs of a step without communication. Communication is the sum over the rank's"
      .. " communication threads: it may be longer than the step, and longer than its kernels in the trace,"
      .. " which last from the first thread to the last. Waiting is for collectives, also at the step's end."
      .. " A waiting thread has an interval, too; only the difference of steps shows the hidden time" },
  cuda = { { "gemm_us", "GEMMs" }, { "gemm_alone_us", "alone" }, { "communication_us", "communication" },
    note = " of an overlapped step, medians: intervals of GEMMs and of collectives on the GPU; alone: GEMMs"
      .. " of a step without communication. A collective"
      .. " that waits for other ranks has one, too; only the difference of steps shows the hidden time" },
}

local function add_ranks(out, measured, backend)
  local shown, rows, columns = RANKS[backend], {}, { "threads", "channels", "rank" }
  local unit, length = unit_of(measured)
  for i, column in ipairs(shown) do columns[3 + i] = { title = column[2], format = "%.3f" } end
  for _, entry in ipairs(measured) do
    for i, rank in ipairs(entry.result.ranks) do
      local row = { entry.threads, entry.channels, i - 1 }
      for c, column in ipairs(shown) do row[3 + c] = rank[column[1]] / length end
      rows[#rows + 1] = row
    end
  end
  out:section("Ranks", { note = unit .. shown.note })
  out:table { columns = columns, rows = rows }
end

-- ---- results of trace pipeline -----------------------------------------------------------------

local VARIANCE = { "threads", "channel", "rank", "kernel_name", "col_Input Dims_first" }
local VARIANCE_NUMBERS = { "kernel_time_min_us", "kernel_time_max_us", "time_diff_us",
  "max_overlap_percentage" }

local function variance_rows(path)
  local found, rows = csv.read(path), {}
  for _, one in ipairs(found and found.rows or {}) do
    local row = {}
    for i, title in ipairs(VARIANCE) do row[i] = tonumber(one[title]) or one[title] end
    for _, title in ipairs(VARIANCE_NUMBERS) do row[#row + 1] = tonumber(one[title]) or false end
    row[#row + 1] = one.overlapping_collective_names
    for i = 1, #row do row[i] = row[i] or nil end
    rows[#rows + 1] = row
  end
  table.sort(rows, function(a, b) return (a[8] or 0) > (b[8] or 0) end)
  return table.move(rows, 1, math.min(#rows, MOST_ROWS), 1, {}), #rows
end

local function overlap_csv(analysis)
  local name = sequences.find(file.list(analysis) or {}, function(name)
    return name:find("^top%d+_gemm_kernels_time_variance_with_collective_overlap%.csv$")
  end)
  return name and analysis .. "/" .. name
end

local function add_variance(out, analysis)
  out:section("GEMMs that vary", { note = "kernel times in us: shortest and longest instance, and the part"
    .. " of the longest with a collective at the same time" })
  local path = overlap_csv(analysis)
  if not path then return out:missing("the table of GEMMs; run gentables workload report") end
  local rows, count = variance_rows(path)
  local function us(title) return { title = title, format = "%.1f" } end
  out:table { columns = { "threads", "channels", "rank", "kernel", "shapes", us "shortest", us "longest",
    us "difference", { title = "overlapped (%)", format = "%.0f" }, "collectives" }, rows = rows,
    note = ("the first %d of %d; all: %s"):format(#rows, count, path:match("[^/]*$")) }
end

local function add_pictures(out, analysis)
  local figures = sequences.map(variance_plots.list, function(picture)
    local path = ("%s/plots/%s.png"):format(analysis, picture.name)
    local bytes = file.exists(path) and file.read(path)
    return { title = picture.name:gsub("_", " "), png = bytes or nil,
      missing = not bytes and "plots/" .. picture.name .. ".png" or nil }
  end)
  out:section("Variation of GEMMs over threads, channels and ranks")
  out:figures(figures)
end

-- "cuBLASLt version=130100 workspace_mib=64, NCCL 22703", as the program prints it, with versions as people
-- write them: cuBLASLt 13.1.0 (workspace 64 MiB), NCCL 2.27.3.
local function libraries(text)
  return text and text:gsub("version=(%d+) workspace_mib=(%d+)", "%1 (workspace %2 MiB)")
    :gsub("(%a) (%d+)(%d%d)(%d%d)%f[%D]", function(before, major, minor, patch)
      return ("%s %s.%d.%d"):format(before, major, tonumber(minor), tonumber(patch))
    end)
end

-- Rows of facts, as page.facts takes them, about the backend's hardware and libraries.
local facts_of = {
  host = function(settings, machine)
    return { { "processor", machine.cpu }, { "cores", machine.cores }, { "waiting", settings.wait },
      { "GEMMs by", machine.library }, { "for the processor", machine.core } }
  end,
  cuda = function(_, machine)
    return { { "GPU", machine.device }, { "GEMMs and collectives by", (libraries(machine.engine)) },
      { "processor", machine.cpu } }
  end,
}

local function add_files(out, sweep)
  local settings, first = sweep.settings, sweep:measured()[1].result
  local facts = { { "workload", settings.name }, { "ranks", settings.ranks },
    { "transport", settings.transport } }
  local machine = facts_of[settings.backend](settings, first.machine)
  table.move(machine, 1, #machine, #facts + 1, facts)
  facts[#facts + 1] = { "traces", "{T}thread/nccl_{C}channels/torch_profiler/rank{R}/" }
  facts[#facts + 1] = { "reports, tables, pictures", ANALYSIS .. "/" }
  for _, one in ipairs(file.list(sweep.folder .. "/merged_traces") or {}) do
    facts[#facts + 1] = { "all ranks in one, for ui.perfetto.dev", "merged_traces/" .. one }
  end
  out:section("Files")
  out:facts(facts)
end

-- ---- public ------------------------------------------------------------------------------------

-- Adds words, steps and ranks of a sweep (store.lua), for pages that have more.
function sweep_page.add(out, sweep)
  local measured = sweep:measured()
  if #measured > 0 then
    add_words(out, sweep, measured)
    add_failures(out, sweep)
    add_steps(out, measured)
    add_ranks(out, measured, sweep.settings.backend)
  else
    out:section("Findings")
    out:text("No configuration was measured.")
    add_failures(out, sweep)
  end
  return #measured > 0
end

local PLACES = {
  host = "%d ranks on the host; GEMMs, and collectives that overlap them. Times are of the threads' own"
    .. " clock.",
  nccl = "%d ranks, a GPU each; GEMMs, and collectives that overlap them. Times are of events on the GPUs.",
  builtin = "%d ranks on one GPU; GEMMs, and collectives that overlap them: kernels are real, links are not."
    .. " Times are of events on the GPU.",
}

-- The page of a sweep.
function sweep_page.of(sweep)
  local settings = sweep.settings
  local out = page.new(("Workload %s: %s"):format(settings.name, sweep.folder:match("[^/]*$")),
    { lead = PLACES[settings.backend == "cuda" and settings.transport or "host"]:format(settings.ranks) })
  if sweep_page.add(out, sweep) then
    add_variance(out, sweep.folder .. "/" .. ANALYSIS)
    add_pictures(out, sweep.folder .. "/" .. ANALYSIS)
    add_files(out, sweep)
  end
  return out
end

return sweep_page
