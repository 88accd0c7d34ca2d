-- A history in words, and as Markdown. A history is { arch, world_size, nodes, runs (history_store), result
-- (of change_points.find) }.
local change_points = require "history.change_points"
local json = require "codec.json"
local markdown = require "codec.markdown"
local quantities = require "base.quantities"
local rank_placement = require "lists.rank_placement"
local rows = require "core.rows"
local run_changes = require "history.run_changes"
local sequences = require "base.sequences"

local history_text = {}

local MOST_ROWS = 50 -- of a table in Markdown

-- The factor of a change, as +5.0 %.
function history_text.percent(shift) return ("%+.1f %%"):format(100 * (2 ^ shift - 1)) end

local function sizes(finding)
  local least, most = quantities.bytes(finding.least), quantities.bytes(finding.most)
  return least == most and least or least .. " to " .. most
end

local function types(series)
  return table.concat({ series.fusion, series.dtype, series.op, series.mode, series.splits }, " ")
end

-- The subject of a change: all strategies, one, or a part of one.
function history_text.subject(finding)
  local series = finding.series
  if finding.kind == "machine" then return "all strategies" end
  local words = series.strategy
  if finding.kind ~= "strategy" then words = words .. ", " .. types(series) end
  if finding.kind == "cell" and series.hidden_size ~= rows.HIDDEN_SIZE_NONE then
    return ("%s, hidden %d, %d tokens"):format(words, series.hidden_size, series.num_tokens)
  end
  local has_sizes = finding.kind == "sizes" or finding.kind == "cell" or finding.is_part
  return has_sizes and words .. ", " .. sizes(finding) or words
end

-- The changes of the provenance at the time of a change.
function history_text.cause(history, finding)
  local runs = history.runs
  local list = run_changes.between(runs[finding.before].provenance, runs[finding.at].provenance)
  return #list > 0 and table.concat(list, ", ") or "same machine and versions"
end

function history_text.title(history)
  return history.arch .. ", " .. rank_placement.words(history.world_size, history.nodes)
end

-- Whether the level of a change is that of the last run.
function history_text.is_last(history, finding) return finding.last == #history.runs end

-- The runs of a change's level, as text.
function history_text.span(history, finding)
  if history_text.is_last(history, finding) then return ("since %d"):format(finding.at) end
  if finding.at == finding.last then return ("only %d"):format(finding.at) end
  return ("%d to %d"):format(finding.at, finding.last)
end

local function phrase(history, finding)
  local percent = ("%.1f %%"):format(100 * math.abs(2 ^ finding.shift - 1))
  local way = finding.shift > 0 and "slower" or "faster"
  return ("%s: %s %s, runs: %s"):format(history_text.subject(finding), percent, way,
    history_text.span(history, finding))
end

-- Changes, the latest first.
function history_text.latest_first(history)
  local out, findings = {}, history.result.findings
  for i = #findings, 1, -1 do out[#out + 1] = findings[i] end
  return out
end

-- The history in one line.
function history_text.sum(history)
  local runs, found = #history.runs, #history.result.findings
  local words = ("%s: %s, %s"):format(history_text.title(history), quantities.counted(runs, "run"),
    found == 0 and "no change" or quantities.counted(found, "change"))
  if runs >= change_points.FEWEST_RUNS then return words end
  return ("%s (at least %d runs are required to find one)"):format(words, change_points.FEWEST_RUNS)
end

-- The history in one line, with its latest change that lasts.
function history_text.answer(history)
  local latest = sequences.find(history_text.latest_first(history), function(finding)
    return history_text.is_last(history, finding)
  end)
  return history_text.sum(history) .. (latest and "; the latest: " .. phrase(history, latest) or "")
end

-- All histories as text: a line for each, and one for each change, the latest first.
function history_text.lines(histories)
  local out = {}
  for _, history in ipairs(histories) do
    out[#out + 1] = history_text.sum(history)
    for _, finding in ipairs(history_text.latest_first(history)) do
      out[#out + 1] = ("  %s%s (%s)"):format(
        finding.shift > 0 and history_text.is_last(history, finding) and "! " or "  ",
        phrase(history, finding), history_text.cause(history, finding))
    end
  end
  return table.concat(out, "\n") .. "\n"
end

-- All histories as JSON: of each its runs, and its changes, the latest first.
function history_text.json(histories)
  return json.encode(json.array(sequences.map(histories, function(history)
    local changes = sequences.map(history_text.latest_first(history), function(finding)
      local at = history.runs[finding.at]
      return { what = history_text.subject(finding), kind = finding.kind, factor = 2 ^ finding.shift,
        first_run = finding.at, last_run = finding.last, date = at.date,
        is_last = history_text.is_last(history, finding), cause = history_text.cause(history, finding) }
    end)
    return { arch = history.arch, world_size = history.world_size, nodes = history.nodes,
      runs = #history.runs, changes = json.array(changes) }
  end))) .. "\n"
end

-- All histories as Markdown.
function history_text.markdown(histories)
  local out = {}
  local function add(...) out[#out + 1] = string.format(...) end
  for _, history in ipairs(histories) do
    add("### History of %s", markdown.escape(history_text.sum(history)))
    out[#out + 1] = ""
    local latest = history_text.latest_first(history)
    if #latest > 0 then
      add("| time | what | runs | from | machine and versions |")
      add("|---:|---|---|---|---|")
    end
    for i, finding in ipairs(latest) do
      if i > MOST_ROWS then
        add("\n%d more.", #latest - MOST_ROWS)
        break
      end
      local mark = history_text.is_last(history, finding) and finding.shift > 0 and "**" or ""
      add("| %s%s%s | %s | %s | %s | %s |", mark, history_text.percent(finding.shift), mark,
        markdown.escape(history_text.subject(finding)), history_text.span(history, finding),
        markdown.escape(history.runs[finding.at].date), markdown.escape(history_text.cause(history, finding)))
    end
    if #latest > 0 then out[#out + 1] = "" end
  end
  return table.concat(out, "\n")
end

return history_text
