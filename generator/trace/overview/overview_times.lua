-- The section of the page on the GPU's time: a bar and a row for each trace, from the sheets gpu_timeline.
local quantities = require "base.quantities"
local sequences = require "base.sequences"
local sources_of = require "trace.overview.figure_sources"
local strips = require "trace.overview.strips"

local overview_times = {}

local MOST_BARS = 64 -- of a run

-- Parts of the time, one after another: they add up to the total time.
local parts = {
  { class = "computation", type = "computation_time", text = "computation" },
  { class = "communication", type = "exposed_comm_time", text = "exposed communication" },
  { class = "copies", type = "exposed_memcpy_time", text = "exposed copies" },
  { class = "idle", type = "idle_time", text = "idle" },
}

local function bar(line, longest)
  local at, made, words = 0, {}, {}
  for i, part in ipairs(parts) do
    local share = (line.ms[part.type] or 0) / longest
    made[i] = { class = part.class, from = at, to = at + share }
    words[i] = ("%s %.3f ms, %.1f %%"):format(part.text, line.ms[part.type] or 0,
      line.percent[part.type] or 0)
    at = at + share
  end
  return { name = line.label, parts = made, text = ("%.3f ms"):format(line.ms.total_time),
    hint = line.label .. ": " .. table.concat(words, "; ") }
end

-- The time lines that get a bar: if they are too many, those with the most exposed communication.
local function with_bars(lines)
  if #lines <= MOST_BARS then return lines end
  local order = table.move(lines, 1, #lines, 1, {})
  table.sort(order, function(a, b) return a.percent.exposed_comm_time > b.percent.exposed_comm_time end)
  return table.move(order, 1, MOST_BARS, 1, {})
end

local function add_table(out, lines, results)
  local ms, percent = "%.3f", "%.1f"
  local columns = { "trace", { title = "total (ms)", format = ms } }
  for _, part in ipairs(parts) do
    columns[#columns + 1] = { title = part.text .. " (ms)", format = ms }
    columns[#columns + 1] = { title = "%", format = percent }
  end
  columns[#columns + 1] = { title = "communication, hidden too (ms)", format = ms }
  out:table { columns = columns, rows = sequences.map(lines, function(line)
    local row = { line.label, line.ms.total_time }
    for i, part in ipairs(parts) do
      row[1 + 2 * i], row[2 + 2 * i] = line.ms[part.type], line.percent[part.type]
    end
    row[3 + 2 * #parts] = line.ms.total_comm_time
    return row
  end) }
  sources_of.add(out, results, sequences.distinct(sequences.field(lines, "path")))
end

-- Adds the section. `all`: { { run, lines }... }; without_reports: the command made none.
function overview_times.add(out, results, all, without_reports)
  local longest = 0
  for _, one in ipairs(all) do
    for _, line in ipairs(one.lines) do longest = math.max(longest, line.ms.total_time) end
  end
  out:section("Time of each rank", { note = "From the first to the last event on the GPU. Exposed: while"
    .. " nothing is computed. Bars have one scale." })
  if longest == 0 then
    out:missing("time lines: " .. (without_reports and "reports were left out"
      or "no trace has GPU events"))
    return
  end
  out:html(strips.legend(parts))
  for _, one in ipairs(all) do
    if one.run.name then out:heading(one.run.name) end
    local shown = with_bars(one.lines)
    out:html(strips.of(sequences.map(shown, function(line) return bar(line, longest) end)))
    if #shown < #one.lines then
      out:note(("The %d of %s with the largest share of exposed communication; the table has all."):format(
        #shown, quantities.counted(#one.lines, "trace")))
    end
    if #one.lines > 0 then add_table(out, one.lines, results) end
    if #one.lines < #one.run.traces then
      out:missing(("time lines of %s without GPU events or without a report"):format(
        quantities.counted(#one.run.traces - #one.lines, "trace")))
    end
  end
end

return overview_times
