-- The figures of docs/history.md, from histories made up from recorded launches (tests/unit/history/lib.lua):
-- false alarms, changes that are found, and the size and the time of a large history.
--
-- usage: gentables lua tests/perf/history.lua BENCHMARK.csv alarms SEEDS
--        gentables lua tests/perf/history.lua BENCHMARK.csv found
--        gentables lua tests/perf/history.lua BENCHMARK.csv large DATABASE [RUNS [ROWS]]
local change_points = require "history.change_points"
local history_store = require "history.history_store"
package.path = package.path .. ";" .. arg[0]:match("^(.*/)") .. "../?.lua"
local lib = require "unit.history.lib"

local path, what = arg[1], arg[2]

-- How many changes are reported over 100 runs of one machine, with a report after each run. A change that
-- several reports have counts once, as do changes in one cell.
local function alarms(seed)
  local recorded, runs, seen, count = lib.recorded(path), {}, {}, 0
  math.randomseed(seed)
  for run = 1, 100 do
    runs[run] = lib.levels(lib.run(recorded))
    for _, finding in ipairs(change_points.find(lib.model(recorded, runs)).findings) do
      local key = finding.kind .. (finding.cell or finding.series and finding.series.strategy or "")
      if not seen[key] then
        seen[key], count = true, count + 1
        print(("  run %d: %s %s, %+.1f %%, p %.2g"):format(run, finding.kind,
          finding.series and finding.series.strategy or "", 100 * (2 ^ finding.shift - 1), finding.p))
      end
    end
  end
  print(("seed %d: %d false alarms in 100 runs"):format(seed, count))
end

-- After how many of five runs that follow twenty others a change of each strategy is found; and how many
-- changes of one cell and strategy are found within these.
local function found()
  local recorded, before = lib.recorded(path), {}
  math.randomseed(1)
  for run = 1, 20 do before[run] = lib.levels(lib.run(recorded)) end
  local strategies, list = {}, {}
  for _, record in ipairs(recorded) do
    if not strategies[record.strategy] then list[#list + 1] = record.strategy end
    strategies[record.strategy] = true
  end
  for _, factor in ipairs { 1.02, 1.03, 1.05, 0.95 } do
    for _, strategy in ipairs(list) do
      local runs = lib.runs_until(recorded, before, function(record)
        return record.strategy == strategy and factor or 1
      end, function(finding) return finding.kind == "strategy" and finding.series.strategy == strategy end)
      print(("%s times %.2f: %s"):format(strategy, factor, runs and "found after run " .. runs
        or "not found in 5 runs"))
    end
  end
  for _, factor in ipairs { 1.05, 1.1, 1.2, 1.5 } do
    local count, all = lib.single_cells(recorded, before, factor, 29)
    print(("one cell and strategy times %.2f: found in %d of %d"):format(factor, count, all))
  end
end

-- Adds RUNS runs of ROWS rows, and prints the size of the database and the seconds of a page.
local function large(database, count, rows)
  local recorded = lib.recorded(path)
  recorded = table.move(recorded, 1, rows, 1, {})
  os.remove(database)
  math.randomseed(1)
  local store = history_store.open(database, true)
  local started = os.clock()
  for run = 1, count do
    store:add { arch = "host", world_size = 2, date = ("run %06d"):format(run), hash = tostring(run),
      records = lib.run(recorded, function() return run > count / 2 and 1.03 or 1 end), provenance = {} }
  end
  store:close()
  print(("%d runs of %d rows: added in %.1f s"):format(count, #recorded, os.clock() - started))
  local handle <close> = assert(io.open(database, "rb"))
  print(("  database: %.1f MB"):format(handle:seek("end") / 1e6))
  os.execute(("time -p '%s' history report --database '%s' --out '%s.html'"):format(gentables.program,
    database, database))
end

if what == "alarms" then
  for seed = 1, tonumber(arg[3]) do alarms(seed) end
elseif what == "found" then
  found()
else
  large(arg[3], tonumber(arg[4] or 1000), tonumber(arg[5] or 1000))
end
