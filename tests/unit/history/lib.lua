-- Histories made up from recorded launches (tests/recorded): each run has launches drawn with replacement.
-- Shared by the tests of this folder and tests/perf/history.lua.
local cell_records = require "rows.cell_records"
local change_points = require "history.change_points"
local fail = require "base.fail"
local launch_levels = require "history.launch_levels"
local rows = require "core.rows"

local lib = {}

local LAUNCHES = 5 -- of a run

-- The records of a benchmark file; each `step`-th cell only.
function lib.recorded(path, step)
  local kept, index_of, cells = {}, {}, 0
  for _, record in ipairs(fail.unless(rows.records(path))) do
    local key = cell_records.key(cell_records.record(record))
    if not index_of[key] then
      cells = cells + 1
      index_of[key] = cells
    end
    if index_of[key] % (step or 1) == 0 then kept[#kept + 1] = record end
  end
  table.sort(kept, cell_records.before)
  return kept
end

-- A run: the records with launches drawn at random, the same for all. `factor(record)`: of its times; nil: 1.
function lib.run(recorded, factor)
  local drawn, out = {}, {}
  for launch = 1, LAUNCHES do drawn[launch] = math.random(1 << 20) end
  for i, record in ipairs(recorded) do
    local copy = cell_records.record(record, record.strategy, { size = record.size, launches = {} })
    local by = factor and factor(record) or 1
    for launch, number in ipairs(drawn) do
      copy.launches[launch] = record.launches[number % #record.launches + 1] * by
    end
    local sorted = table.move(copy.launches, 1, LAUNCHES, 1, {})
    table.sort(sorted)
    copy.time_us, out[i] = sorted[(LAUNCHES + 1) // 2], copy
  end
  return out
end

-- The levels of a run, as change_points.find takes them.
function lib.levels(run)
  local level_of, out = launch_levels.of(run), {}
  for i, record in ipairs(run) do
    out[2 * i - 1], out[2 * i] = i, level_of[record]
  end
  return out
end

-- A history of runs (lists of levels) for change_points.find.
function lib.model(recorded, runs) return { runs = #runs, series = recorded, levels = runs } end

-- Adds up to five runs with times by `factor` to those of `before`. Returns the number of them at which some
-- finding satisfies is_wanted(finding), and all findings; nil if none does.
function lib.runs_until(recorded, before, factor, is_wanted)
  local runs = table.move(before, 1, #before, 1, {})
  for after = 1, 5 do
    runs[#runs + 1] = lib.levels(lib.run(recorded, factor))
    local findings = change_points.find(lib.model(recorded, runs)).findings
    for _, finding in ipairs(findings) do
      if is_wanted(finding) then return after, findings end
    end
  end
end

-- Adds five runs to those of `before`, in which one series has its times by `factor`. Returns in how many of
-- the series, every `step`-th, this is found, and how many were tried.
function lib.single_cells(recorded, before, factor, step)
  local runs, found, tried = table.move(before, 1, #before, 1, {}), 0, 0
  for after = 1, 5 do runs[#before + after] = lib.levels(lib.run(recorded)) end
  for i = 1, #recorded, step do
    for after = 1, 5 do
      local levels = runs[#before + after]
      levels[2 * i] = levels[2 * i] + math.log(factor, 2)
    end
    for _, finding in ipairs(change_points.find(lib.model(recorded, runs)).findings) do
      if finding.kind == "cell" and finding.series == recorded[i] then found = found + 1 end
    end
    for after = 1, 5 do
      local levels = runs[#before + after]
      levels[2 * i] = levels[2 * i] - math.log(factor, 2)
    end
    tried = tried + 1
  end
  return found, tried
end

return lib
