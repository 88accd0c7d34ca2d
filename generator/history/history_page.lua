-- A history as one HTML page: for each arch and TP size the changes, the times of the machine and of each
-- strategy over runs as lines, and the runs before which machine or versions changed.
local history_text = require "history.history_text"
local page = require "pages.page"
local run_changes = require "history.run_changes"
local sequences = require "base.sequences"
local statistics = require "base.statistics"

local history_page = {}

local MOST_LINES = 24 -- of parts and cells that changed
local MOST_IN_LEAD = 4 -- histories with a line at the top
local WIDTH, HEIGHT, LEFT = 640, 96, 52
local LEAST_RANGE = 0.06 -- in log2, to either side

local STYLE = [[
td.date { white-space: nowrap; }
svg.levels { width: 100%; max-width: 640px; height: auto; display: block; font-size: 11px; }
svg.levels text { fill: var(--soft); }
svg.levels .level { fill: none; stroke: var(--link); stroke-width: 1.5; }
svg.levels .run { fill: var(--link); }
svg.levels .axis { stroke: var(--line); }
svg.levels .change { stroke: var(--bad); }
svg.levels .version { stroke: var(--soft); stroke-dasharray: 2 3; }
]]

-- ---- lines ------------------------------------------------------------------------------------

-- The values above their median.
local function centred(values)
  local middle = statistics.median(sequences.map(values, function(value) return value or nil end)) or 0
  return sequences.map(values, function(value) return value and value - middle end)
end

local function range_of(values)
  local range = LEAST_RANGE
  for _, value in ipairs(values) do
    if value then range = math.max(range, math.abs(value)) end
  end
  return 1.05 * range
end

local function x_of(run, runs) return LEFT + (WIDTH - LEFT - 8) * (run - 0.5) / runs end

local function y_of(value, range) return HEIGHT / 2 * (1 - 0.9 * value / range) end

-- The lines between runs that are measured, and their dots if these are few.
local function add_levels(add, values, range)
  local part = {}
  local function flush()
    if #part > 1 then add('<polyline class="level" points="%s"/>', table.concat(part, " ")) end
    part = {}
  end
  for run, value in ipairs(values) do
    if value then
      part[#part + 1] = ("%.1f,%.1f"):format(x_of(run, #values), y_of(value, range))
      if #values <= 100 then
        add('<circle class="run" cx="%.1f" cy="%.1f" r="2"><title>run %d: %s</title></circle>',
          x_of(run, #values), y_of(value, range), run, history_text.percent(value))
      end
    else
      flush()
    end
  end
  flush()
end

-- Values over runs as SVG. changes: runs with a line for a change; versions: runs with one for a version.
local function lines(values, changes, versions, label)
  values = centred(values)
  local out, range = {}, range_of(values)
  local function add(...) out[#out + 1] = string.format(...) end
  add('<svg class="levels" viewBox="0 0 %d %d" role="img" aria-label="%s">', WIDTH, HEIGHT,
    page.escape(label))
  local ticks = { { range / 1.05, 4 }, { 0, 4 }, { -range / 1.05, 0 } }
  for _, tick in ipairs(ticks) do
    local y = y_of(tick[1], range)
    add('<line class="axis" x1="%d" x2="%d" y1="%.1f" y2="%.1f"/>', LEFT, WIDTH - 8, y, y)
    add('<text x="%d" y="%.1f" text-anchor="end">%s</text>', LEFT - 6, y + tick[2],
      tick[1] == 0 and "0" or history_text.percent(tick[1]))
  end
  local function mark(class, run)
    local x = (x_of(run, #values) + x_of(run - 1, #values)) / 2
    add('<line class="%s" x1="%.1f" x2="%.1f" y1="0" y2="%d"/>', class, x, x, HEIGHT)
  end
  for _, run in ipairs(versions) do mark("version", run) end
  for _, run in ipairs(changes) do mark("change", run) end
  add_levels(add, values, range)
  out[#out + 1] = "</svg>"
  return table.concat(out, "\n")
end

-- ---- sections ---------------------------------------------------------------------------------

-- The runs before which facts changed: { { run, texts }... }.
local function versions_of(history)
  local out = {}
  for run = 2, #history.runs do
    local list = run_changes.between(history.runs[run - 1].provenance, history.runs[run].provenance)
    if #list > 0 then out[#out + 1] = { run = run, text = table.concat(list, ", ") } end
  end
  return out
end

local function add_changes(p, history)
  local rows = sequences.map(history_text.latest_first(history), function(finding)
    local is_slower = finding.shift > 0
    return {
      { text = history_text.percent(finding.shift), value = finding.shift, class = is_slower and "worse"
        or "better" },
      history_text.subject(finding), { text = history_text.span(history, finding), value = finding.at },
      { text = history.runs[finding.at].date, class = "date" }, finding.cells > 0 and finding.cells or nil,
      history_text.cause(history, finding),
    }
  end)
  if #rows == 0 then return p:text("No change.") end
  p:table { caption = "Changes, the latest first", rows = rows,
    columns = { { title = "time", help = "change of the time" }, "what", "runs", "from",
      { title = "cells", help = "cells of which the mean changed" },
      { title = "machine and versions", help = "recorded changes between the two runs" } } }
end

local function starts_of(findings, is_wanted)
  return sequences.map(findings, function(finding) return is_wanted(finding) and finding.at or nil end)
end

local function add_lines(p, history, versions)
  local findings, figures, runs = history.result.findings, {}, sequences.field(versions, "run")
  local function add(title, values, is_wanted)
    figures[#figures + 1] = { title = title,
      markup = lines(values, starts_of(findings, is_wanted), runs, title .. " over runs") }
  end
  add("all strategies", history.result.machine, function(finding) return finding.kind == "machine" end)
  for _, entry in ipairs(history.result.strategies) do
    add(entry.strategy .. ", relative to all", entry.values, function(finding)
      return finding.kind ~= "machine" and finding.values == entry.values
    end)
  end
  local shown, left_out = sequences.set(sequences.field(history.result.strategies, "values")), 0
  for _, finding in ipairs(findings) do
    if finding.kind ~= "machine" and not shown[finding.values] then
      shown[finding.values] = true
      if #figures < MOST_LINES + #history.result.strategies + 1 then
        add(history_text.subject(finding), finding.values, function(other)
          return other.values == finding.values
        end)
      else
        left_out = left_out + 1
      end
    end
  end
  p:heading("Times over runs")
  p:note("Change of the time against the median run. A red line: a change begins. A dashed line: the machine "
    .. "or a version changed.")
  p:figures(figures)
  if left_out > 0 then p:note(("%d more parts and cells changed."):format(left_out)) end
end

local function add_versions(p, history, versions)
  local rows = sequences.map(versions, function(version)
    return { version.run, { text = history.runs[version.run].date, class = "date" }, version.text }
  end)
  if #rows > 0 then
    p:table { caption = "Changes of the machine and of versions", columns = { "run", "date", "change" },
      rows = rows }
  end
end

-- The summary at the top of the page: a line for each history, and what its limits are.
local function lead_of(histories, options)
  local out = {}
  for i = 1, math.min(#histories, MOST_IN_LEAD) do out[i] = history_text.answer(histories[i]) .. "." end
  local more = #histories - #out
  if more > 0 then out[#out + 1] = ("%d more %s."):format(more, more == 1 and "history" or "histories") end
  out[#out + 1] = ("Where times changed by %.3g %% or more, in sweeps of the same shapes; the probability of "
    .. "any false alarm is at most %.3g %%."):format(100 * options.threshold, 100 * options.alpha)
  return table.concat(out, "\n")
end

-- The page of histories (see history_text); page:write writes it. `options` are those of change_points.find.
function history_page.page(histories, options)
  local p = page.new("History of times", { style = STYLE, lead = lead_of(histories, options) })
  for _, history in ipairs(histories) do
    local runs, versions = history.runs, versions_of(history)
    p:section(history_text.title(history), { note = history_text.sum(history) })
    p:facts { { "runs", ("%d, %s to %s"):format(#runs, runs[1].date, runs[#runs].date) },
      { "cells and strategies", #history.model.series } }
    add_changes(p, history)
    add_lines(p, history, versions)
    add_versions(p, history, versions)
  end
  return p
end

return history_page
