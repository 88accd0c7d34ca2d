-- The section of the page on prefill, decode and mixed steps, and the answer on the first screen, from the
-- sheets phases.
local columns_of = require "trace.overview.overview_columns"
local figure_sources = require "trace.overview.figure_sources"
local quantities = require "base.quantities"
local results_of = require "trace.overview.overview_results"
local sequences = require "base.sequences"
local strips = require "trace.overview.strips"

local overview_phases = {}

local fixed = columns_of.fixed

local MOST_BARS = 64 -- of all traces
local NAME, QUESTION = "phases", "Prefill and decode"
local FROM, TOTAL, PERCENT, PER_STEP = "inferred from", "total_time ms", "percent", "time per step ms"

-- Parts of a phase's time, one after another: they add up to its total time.
local parts = {
  { class = "computation", title = "computation_time ms", text = "computation" },
  { class = "communication", title = "exposed_comm_time ms", text = "exposed communication" },
  { class = "copies", title = "exposed_memcpy_time ms", text = "exposed copies" },
  { class = "idle", title = "idle_time ms", text = "idle" },
}

-- The row of events outside of steps has no share. The time line between its first and last event may contain
-- steps.
local function is_phase(row) return tonumber(row[PERCENT]) ~= nil end

local function inferred_from(row) return row[FROM] ~= "" and row[FROM] or nil end

-- The rows of the runs' sheets with phases: { run, trace, label, path, row }...
local function all_rows(results, runs)
  return sequences.join(runs, function(run)
    return sequences.join(run.traces, function(trace)
      local sheet = results:sheet(trace.csvs, NAME)
      return sequences.map(sheet and sheet.rows or {}, function(row)
        return { run = run, trace = trace, label = results_of.label(run, trace), path = sheet.path,
          row = row }
      end)
    end)
  end)
end

local function paths_of(rows) return sequences.distinct(sequences.field(rows, "path")) end

-- ---- the answer --------------------------------------------------------------------------------

local function percent(one) return tonumber(one.row[PERCENT]) end

local function range(of_phase)
  local most = sequences.largest(of_phase, percent)
  local least = sequences.largest(of_phase, function(one) return -percent(one) end)
  local text = ("%.1f %%"):format(percent(most))
  local low = ("%.1f"):format(percent(least))
  return low .. " %" == text and text or low .. " – " .. text, least, most
end

-- "; 4 steps of 12.100 ms", if that is so of all traces; else "".
local function steps_in_words(of_phase)
  local words = sequences.distinct(sequences.map(of_phase, function(one)
    local steps, time = tonumber(one.row.steps), tonumber(one.row[PER_STEP])
    return steps and time and ("; %s of %.3f ms"):format(quantities.counted(steps, "step"), time) or ""
  end))
  return #words == 1 and words[1] or ""
end

-- The shares of the other phases.
local function others_in_words(rows, phase)
  local names = sequences.distinct(sequences.map(rows, function(one)
    return one.row.phase ~= phase and one.row.phase or nil
  end))
  return table.concat(sequences.map(names, function(name)
    return ("; %s %s"):format(name, (range(sequences.filter(rows, function(one)
      return one.row.phase == name
    end))))
  end))
end

-- The phase with the largest share of time, and the others, as an answer of overview_answers.lua.
function overview_phases.answer(results, runs)
  local rows = sequences.filter(all_rows(results, runs), function(one) return is_phase(one.row) end)
  if #rows == 0 then return nil end
  local phase = sequences.largest(rows, percent).row.phase
  local of_phase = sequences.filter(rows, function(one) return one.row.phase == phase end)
  local text, least, most = range(of_phase)
  local paths, is_range = { least.path, most.path }, text:find "–"
  local words = "of the time"
  if is_range then words = ("%s; least on %s, most on %s"):format(words, least.label, most.label) end
  words = words .. steps_in_words(of_phase) .. others_in_words(rows, phase)
  local from = inferred_from(most.row)
  if from then words = ("%s; inferred from %s"):format(words, from) end
  local is_one = not is_range or least.path == most.path
  return { QUESTION, ("%s %s"):format(text, phase), words, is_one and { most.path } or paths,
    not is_one and { "least", "most" } or nil }
end

-- ---- the section -------------------------------------------------------------------------------

local function bar(one, longest, with_label)
  local at, made, words, row = 0, {}, {}, one.row
  for i, part in ipairs(parts) do
    local time = tonumber(row[part.title]) or 0
    made[i] = { class = part.class, from = at, to = at + time / longest }
    words[i] = ("%s %.3f ms"):format(part.text, time)
    at = made[i].to
  end
  local name = with_label and ("%s, %s"):format(one.trace.label, row.phase) or row.phase
  return { name = name, parts = made, hint = name .. ": " .. table.concat(words, "; "),
    text = ("%.3f ms, %.1f %%"):format(tonumber(row[TOTAL]), percent(one)) }
end

local function add_table(out, rows)
  local has_inferred = sequences.any(rows, function(one) return inferred_from(one.row) ~= nil end)
  local columns = { "trace", "phase", "steps", fixed("time of a step (ms)", 3), fixed("time (ms)", 3),
    fixed("share (%)", 1) }
  for _, part in ipairs(parts) do columns[#columns + 1] = fixed(part.text .. " (ms)", 3) end
  columns = sequences.append(columns, { "GPU events", has_inferred and FROM or nil })
  out:table { columns = columns, may_go = { "trace", FROM }, rows = sequences.map(rows, function(one)
    local row = one.row
    local is_inside = is_phase(row)
    local cells = { one.trace.label, row.phase, is_inside and tonumber(row.steps) or nil,
      tonumber(row[PER_STEP]), is_inside and tonumber(row[TOTAL]) or nil, tonumber(row[PERCENT]) }
    for i, part in ipairs(parts) do
      cells[6 + i] = (is_inside or part.class ~= "idle") and tonumber(row[part.title]) or nil
    end
    cells[7 + #parts], cells[8 + #parts] = tonumber(row["GPU events"]), has_inferred and row[FROM] or nil
    return cells
  end) }
end

local function add_run(out, results, rows, longest)
  if rows[1].run.name then out:heading(rows[1].run.name) end
  local phases = sequences.filter(rows, function(one) return is_phase(one.row) end)
  local shown = table.move(phases, 1, math.min(#phases, MOST_BARS), 1, {})
  local with_label = #paths_of(rows) > 1
  out:html(strips.of(sequences.map(shown, function(one) return bar(one, longest, with_label) end)))
  if #shown < #phases then
    out:note(("The first %d of %d bars; the table has all."):format(#shown, #phases))
  end
  add_table(out, rows)
  figure_sources.add(out, results, paths_of(rows))
end

-- What the times and the phases are from.
local function note_of(rows)
  local from = sequences.distinct(sequences.map(rows, function(one) return inferred_from(one.row) end))
  if #from == 0 then
    return "By names of annotations. GPU time from the first to the last event of each step; shares are of"
      .. " the whole time."
  end
  return ("Inferred from %s: no annotation names a phase. GPU time from the first to the last event of"
    .. " successive steps of a phase; shares are of the whole time."):format(table.concat(from, " and "))
end

-- Adds the section, unless no trace has phases.
function overview_phases.add(out, results, runs)
  local all = all_rows(results, runs)
  if #all == 0 then return end
  out:section(QUESTION, { note = note_of(all) })
  out:html(strips.legend(parts))
  local longest = 0
  for _, one in ipairs(all) do
    if is_phase(one.row) then longest = math.max(longest, tonumber(one.row[TOTAL])) end
  end
  if longest == 0 then longest = 1 end -- bars without a length
  for _, run in ipairs(runs) do
    local rows = sequences.filter(all, function(one) return one.run == run end)
    if #rows > 0 then add_run(out, results, rows, longest) end
  end
end

return overview_phases
