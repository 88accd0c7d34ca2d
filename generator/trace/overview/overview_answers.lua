-- The first screen of the page: the questions that a reader has, each with its answer and the file that it is
-- from.
local figure_sources = require "trace.overview.figure_sources"
local long_names = require "trace.overview.long_names"
local overview_changes = require "trace.overview.overview_changes"
local overview_operations = require "trace.overview.overview_operations"
local overview_phases = require "trace.overview.overview_phases"
local overview_variance = require "trace.overview.overview_variance"
local page = require "pages.page"
local quantities = require "base.quantities"
local results_of = require "trace.overview.overview_results"
local sequences = require "base.sequences"
local side_by_side = require "pages.side_by_side"
local statistics = require "base.statistics"

local overview_answers = {}

local function percent(value) return ("%.1f %%"):format(value) end

-- ---- the answers -------------------------------------------------------------------------------
-- Each is { question, answer, words, paths, words after the paths or nil }, or nil where there is none.

-- The time lines of all runs, labelled with their runs.
local function all_lines(all)
  return sequences.join(all, function(one)
    return sequences.map(one.lines, function(line)
      return { label = results_of.label(one.run, line), line = line }
    end)
  end)
end

-- The range of a type's share of time over all traces.
local function share_of_time(lines, question, type)
  if #lines == 0 then return nil end
  local function value(one) return one.line.percent[type] or 0 end
  local most = sequences.largest(lines, value)
  local least = sequences.largest(lines, function(one) return -value(one) end)
  if percent(value(least)) == percent(value(most)) then
    local of = #lines == 1 and ("of %.3f ms"):format(most.line.ms.total_time)
      or ("of the time on each of %s"):format(quantities.counted(#lines, "trace"))
    return { question, percent(value(most)), of, { most.line.path } }
  end
  local paths, is_one = { least.line.path, most.line.path }, least.line.path == most.line.path
  return { question, ("%.1f – %s"):format(value(least), percent(value(most))),
    ("of the time; least on %s, most on %s"):format(least.label, most.label),
    is_one and { paths[1] } or paths, not is_one and { "least", "most" } or nil }
end

local function exposed(lines)
  if sequences.all(lines, function(one) return (one.line.ms.total_comm_time or 0) == 0 end) then
    if #lines == 0 then return nil end
    return { "Exposed communication", "none", "no kernel communicates", { lines[1].line.path } }
  end
  return share_of_time(lines, "Exposed communication", "exposed_comm_time")
end

-- The row of the rank that arrives last most often, and of the one that waits longest, of the run where that
-- wait is longest.
local function arrivals(results, runs)
  local found
  for _, run in ipairs(runs) do
    local sheet = results:sheet(run.collectives, "straggler_summary")
    local function wait(row) return tonumber(row.avg_wait_time_us) end
    local waits = sheet and sequences.largest(sheet.rows, wait)
    if waits and (not found or wait(waits) > wait(found.waits)) then
      found = { run = run, sheet = sheet, waits = waits,
        last = sequences.largest(sheet.rows, function(row) return tonumber(row.pct_arrived_last) end) }
    end
  end
  return found
end

-- Whether a rank is last more often than chance explains: if all ranks were last equally often, any of them
-- would be last so often with a probability of at most 5 %.
local function stands_out(last, ranks)
  if ranks < 2 then return true end
  return ranks * statistics.binomial_tail(tonumber(last.times_arrived_last), tonumber(last.collectives),
    1 / ranks) <= 0.05
end

local function last_rank(results, runs)
  local found = arrivals(results, runs)
  if not found then return nil end
  local last, waits, ranks = found.last, found.waits, #found.sheet.rows
  local words = ("in %s of %s collectives"):format(percent(tonumber(last.pct_arrived_last)), last.collectives)
  local is_one = stands_out(last, ranks)
  if not is_one then
    words = ("most often rank %s, %s; chance alone gives %s"):format(last.rank, words, percent(100 / ranks))
  end
  if last.rank ~= waits.rank then
    words = ("%s; rank %s waits %.1f µs on average"):format(words, waits.rank,
      tonumber(waits.avg_wait_time_us))
  end
  if found.run.name then words = ("%s (%s)"):format(words, found.run.name) end
  return { "Arrives last", is_one and "rank " .. last.rank or "no rank stands out", words,
    { found.sheet.path } }
end

local function most_time(results, runs)
  for _, run in ipairs(runs) do
    for _, trace in ipairs(run.traces) do
      local sheet = results:sheet(trace.csvs, "ops_summary")
      if sheet then
        local row = results_of.largest(sheet, 1, function(row)
          return tonumber(row.total_direct_kernel_time_ms)
        end)[1]
        return { "Most kernel time", percent(tonumber(row["Percentage (%)"])),
          ("%s, on %s"):format(long_names.short(row.name), results_of.label(run, trace)), { sheet.path } }
      end
    end
    local breakdown = results:sheet(run.batch, "grouped_breakdown")
    local row = breakdown and results_of.purposes(breakdown)[1]
    if row then
      local words, paths = ("%.3f ms on average over ranks"):format(1000 * tonumber(row["Time (s)"])),
        { breakdown.path }
      local op = overview_operations.most(results, run)
      if op then
        words, paths[2] = ("%s; op with most time: %s, %.3f ms over all ranks"):format(words, op.name,
          op.time_us / 1000), op.path
      end
      return { "Most time by purpose", row.Group, words, paths }
    end
  end
end

local function varying(results, variance)
  local sheet = overview_variance.sheet(results, variance)
  if not sheet then return nil end
  local row = overview_variance.largest(sheet)[1]
  return { "Most varying GEMM", ("%.1f µs"):format(tonumber(row.time_diff_us)),
    ("between the shortest and the longest %s; %s"):format(overview_variance.gemm_of(row),
      overview_variance.trace_of(row)), { sheet.path } }
end

local function changed(results, runs)
  local list = {}
  for _, run in ipairs(runs) do
    for _, trace in ipairs(run.traces) do
      local value, path = overview_changes.total(results, trace.against)
      local label = results_of.label(run, trace)
      if value then
        list[#list + 1] = { value = value, path = path, label = label, against = trace.against }
      end
    end
  end
  if #list == 0 then return nil end
  local most = sequences.largest(list, function(one) return one.value end)
  local least = sequences.largest(list, function(one) return -one.value end)
  local function text(one) return side_by_side.signed_percent(one.value / 100) end
  if text(most) == text(least) then
    return { "Total time", text(most), "against " .. most.against.base, { most.path } }
  end
  return { "Total time", text(least) .. " – " .. text(most), ("against %s; most on %s"):format(
    most.against.base, most.label), { least.path, most.path }, { "least", "most" } }
end

-- ---- the markup --------------------------------------------------------------------------------

local function box(results, one)
  local sources = figure_sources.line(results, one[4], one[5])
  return ('<div class="answer"><h3>%s</h3><p class="figure">%s</p><p>%s</p>%s</div>\n'):format(
    page.escape(one[1]), page.escape(one[2]), page.escape(one[3]), sources)
end

-- Adds the answers. `all`: { { run, lines }... }; given as of overview_page.write.
function overview_answers.add(out, results, all, given)
  local runs, lines = sequences.field(all, "run"), all_lines(all)
  local made = { exposed(lines) or false, last_rank(results, runs) or false,
    share_of_time(lines, "Idle", "idle_time") or false, overview_phases.answer(results, runs) or false,
    most_time(results, runs) or false, varying(results, given.variance) or false,
    changed(results, runs) or false }
  made = sequences.filter(made, function(one) return one ~= false end)
  out:section("Answers", { class = "first" })
  if #made == 0 then
    return out:missing("answers: " .. (given.without_reports and "reports were left out"
      or "no report has work on a GPU"))
  end
  out:html('<div class="answers">\n' .. table.concat(sequences.map(made, function(one)
    return box(results, one)
  end)) .. "</div>\n")
end

return overview_answers
