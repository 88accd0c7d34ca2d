-- The page of a sweep: what its numbers say in words, then the numbers, the pictures of how GEMMs vary, and
-- where everything is. Only shows: store.lua has the times, trace pipeline made the rest.
local chart = require "workload.chart"
local csv = require "csv"
local file = require "core.file"
local page = require "page"
local plots = require "trace.plots"
local words = require "workload.words"

local sweep_page = {}

local ANALYSIS = "tracelens_analysis"
local MOST_ROWS = 20 -- of GEMMs that vary

-- ---- words -------------------------------------------------------------------------------------

local function add_words(out, sweep, measured)
  out:section("What the numbers say")
  out:text(words.best(measured))
  out:text(words.why(measured[1].result, sweep.settings.ranks))
  for _, entry in ipairs(measured) do
    local result = entry.result
    out:heading(words.name(entry))
    out:text(words.times(result))
    out:text(words.hidden(result))
    out:text(words.cost(result) .. " " .. words.tracing(result))
    local used = words.used(entry)
    if used then out:text(used) end
  end
end

local function add_failures(out, sweep)
  for _, entry in ipairs(sweep.entries) do
    if not entry.result then out:missing(("%s: %s"):format(words.name(entry), entry.reason)) end
  end
end

-- ---- numbers -----------------------------------------------------------------------------------

local function interval(summary, scale, format)
  return { text = (format .. " to " .. format):format(summary.low * scale, summary.high * scale),
    value = summary.low }
end

local function add_steps(out, measured)
  local rows = {}
  for i, entry in ipairs(measured) do
    local result, ratios = entry.result, entry.result.ratios
    local hides = words.has_exposed(result)
    rows[i] = { entry.threads, entry.channels, result.used.threads, result.used.channels,
      result.times.gemms.median / 1e3, result.times.serial.median / 1e3,
      result.times.overlapped.median / 1e3, interval(result.times.overlapped, 1e-3, "%.2f"),
      hides and 100 * ratios.hidden.median or nil, hides and interval(ratios.hidden, 100, "%.0f") or nil,
      ratios.overlapped_to_serial.median, 100 * ratios.tracing.median, result.times.overlapped.samples }
  end
  out:section("Steps", { note = "ms, medians of the slowest rank of each step; 95 % intervals of medians."
    .. " hidden = (serial − overlapped) / (serial − GEMMs alone), of steps that follow each other; empty"
    .. " where serial and GEMMs alone cannot be told apart" })
  out:figures { { title = "A step: GEMMs alone, each collective waited for, overlapped (ms, 95 % intervals)",
    markup = chart.steps(measured) } }
  out:table { columns = { "threads", "channels", "threads used", "channels used",
    { title = "GEMMs alone", format = "%.2f" }, { title = "serial", format = "%.2f" },
    { title = "overlapped", format = "%.2f" }, "interval", { title = "hidden (%)", format = "%.0f" },
    "interval (%)", { title = "overlapped / serial", format = "%.3f" },
    { title = "tracing (%)", format = "%.1f" }, "steps" }, rows = rows }
end

-- On a GPU nobody's processor time is known, and no rank waits on its host.
local function add_gpu_ranks(out, rows, ms)
  for i, row in ipairs(rows) do rows[i] = { row[1], row[2], row[3], row[4], row[6] } end
  out:section("Ranks", { note = "ms of an overlapped step, medians of intervals on the GPU. What waits has an"
    .. " interval, too; only the difference of steps says what was hidden" })
  out:table { columns = { "threads", "channels", "rank", ms "GEMMs", ms "communication" }, rows = rows }
end

local function add_ranks(out, measured)
  local rows = {}
  for _, entry in ipairs(measured) do
    for i, rank in ipairs(entry.result.ranks) do
      rows[#rows + 1] = { entry.threads, entry.channels, i - 1, rank.gemm_us / 1e3, rank.gemm_cpu_us / 1e3,
        rank.communication_us / 1e3, rank.communication_cpu_us / 1e3, rank.await_us / 1e3 }
    end
  end
  local function ms(title) return { title = title, format = "%.3f" } end
  if measured[1].result.backend == "cuda" then return add_gpu_ranks(out, rows, ms) end
  out:section("Ranks", { note = "ms of an overlapped step, medians: intervals, and how much of them the"
    .. " thread ran on a processor. What waits has an interval, too; only the difference of steps says"
    .. " what was hidden" })
  out:table { columns = { "threads", "channels", "rank", ms "GEMMs", ms "on a processor", ms "communication",
    ms "on a processor", ms "waiting" }, rows = rows }
end

-- ---- what trace pipeline made ------------------------------------------------------------------

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
  for _, one in ipairs(file.list(analysis) or {}) do
    if one:find("^top%d+_gemm_kernels_time_variance_with_collective_overlap%.csv$") then
      return analysis .. "/" .. one
    end
  end
end

local function add_variance(out, analysis)
  out:section("GEMMs that vary", { note = "kernel times in µs: shortest and longest instance, and how much"
    .. " of the longest a collective was under way" })
  local path = overlap_csv(analysis)
  if not path then return out:missing("the table of GEMMs; gentables workload report makes it") end
  local rows, count = variance_rows(path)
  local function us(title) return { title = title, format = "%.1f" } end
  out:table { columns = { "threads", "channels", "rank", "kernel", "shapes", us "shortest", us "longest",
    us "difference", { title = "overlapped (%)", format = "%.0f" }, "collectives" }, rows = rows,
    note = ("the first %d of %d; all: %s"):format(#rows, count, path:match("[^/]*$")) }
end

local function add_pictures(out, analysis)
  local figures = {}
  for i, picture in ipairs(plots.list) do
    local path = ("%s/plots/%s.png"):format(analysis, picture.name)
    local bytes = file.exists(path) and file.read(path)
    figures[i] = { title = picture.name:gsub("_", " "), png = bytes or nil,
      missing = not bytes and "plots/" .. picture.name .. ".png" or nil }
  end
  out:section("How GEMMs vary over threads, channels and ranks")
  out:figures(figures)
end

local function add_files(out, sweep)
  local result = sweep:measured()[1].result
  local by = result.backend == "cuda" and { { "device", result.device }, { "by", result.library } }
    or { { "waiting", sweep.settings.wait }, { "GEMMs by", result.machine.library },
      { "for the processor", result.machine.core } }
  local facts = { { "workload", sweep.settings.name }, { "ranks", sweep.settings.ranks },
    { "transport", sweep.settings.transport }, by[1], by[2], by[3] }
  for _, fact in ipairs {
    { "traces", "{T}thread/nccl_{C}channels/torch_profiler/rank{R}/" },
    { "reports, tables, pictures", ANALYSIS .. "/" } } do
    facts[#facts + 1] = fact
  end
  for _, one in ipairs(file.list(sweep.folder .. "/merged_traces") or {}) do
    facts[#facts + 1] = { "all ranks in one, for ui.perfetto.dev", "merged_traces/" .. one }
  end
  out:section("Where everything is")
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
    add_ranks(out, measured)
  else
    out:section("What the numbers say")
    out:text("No configuration was measured.")
    add_failures(out, sweep)
  end
  return #measured > 0
end

-- The page of a sweep.
function sweep_page.of(sweep)
  local settings = sweep.settings
  local out = page.new(("Workload %s: %s"):format(settings.name, sweep.folder:match("[^/]*$")),
    { lead = ("%d ranks on %s; GEMMs, and collectives that overlap them. Times are of %s."):format(
      settings.ranks, settings.backend == "cuda" and "GPUs" or "the host",
      settings.backend == "cuda" and "the GPUs' own events" or "the threads' own clock") })
  if sweep_page.add(out, sweep) then
    add_variance(out, sweep.folder .. "/" .. ANALYSIS)
    add_pictures(out, sweep.folder .. "/" .. ANALYSIS)
    add_files(out, sweep)
  end
  return out
end

return sweep_page
