-- How much less than an exhaustive sweep the planner measures, and how much regret that adds: played on
-- recorded rows.
--
-- usage: gentables lua tests/perf/planner.lua RECORDED.csv [SEEDS]
--   RECORDED.csv: rows of one TP size with ten launches or more at each point. For each seed an exhaustive
--   and an adaptive sweep get five of the launches; five others are the fresh sweep on which both tables are
--   judged: at the points of the spec, and at hidden sizes that neither has measured. Both sweeps give each
--   visit and strategy the same time, so the amount of measuring is counted in visits times strategies.
--   Prints a line per seed and fusion, and the means; exit code 1 if the adaptive sweep measures more than an
--   eighth, or its mean regret is more than one percentage point higher.
package.path = package.path .. ";" .. arg[0]:match("^(.*/)") .. "../recorded/?.lua"
local json = require "codec.json"
local lib = require "lib"

-- The loss of the table of such rows on fresh rows, by its C header's own lookup.
local function regret(folder, recording, spec, found, fresh)
  lib.write_rows(folder, recording, spec, found)
  lib.shell(("'%s' generate --data-dir '%s' --arch host --out '%s' --formats c,table --against none"):format(
    gentables.program, folder, folder))
  return json.decode((lib.shell(("'%s' regret --table '%s/allreduce_table.h' --rows '%s' --json"):format(
    gentables.program, folder, fresh))))
end

local function percent(share) return ("%.2f %%"):format(100 * share) end

local function report(name, loss)
  print(("  %-10s regret %s in the mean, %s at p99, %s at worst; %s as measured"):format(name,
    percent(loss.certain.mean), percent(loss.certain.p99), percent(loss.certain.worst),
    percent(loss.raw.mean)))
end

local path, seeds = arg[1], tonumber(arg[2] or 5)
assert(path, "usage: gentables lua tests/perf/planner.lua RECORDED.csv [SEEDS]")
local recording = lib.read(path)
local work = os.tmpname()
os.remove(work)
local sums, runs = { share = 0, all = 0, some = 0 }, 0
for seed = 1, seeds do
  for _, fusion in ipairs(recording.fusions) do
    local order = lib.shuffled(#recording.any.launches, seed)
    local spec = lib.spec(recording, fusion)
    local fresh = lib.write_rows(work .. "/fresh", recording, spec,
      lib.sweep(recording, order, lib.LAUNCHES + 1, { fusion = fusion }))
    local costs, losses = {}, {}
    for i, exhaustive in ipairs { true, false } do
      local found
      found, costs[i] = lib.play(recording, spec, order, exhaustive)
      losses[i] = regret(work .. "/swept", recording, spec, found, fresh)
    end
    print(("seed %d %s: 1/%.1f of %d visits"):format(seed, fusion, costs[1] / costs[2], costs[1]))
    report("everything", losses[1])
    report("adaptive", losses[2])
    runs = runs + 1
    sums.share = sums.share + costs[2] / costs[1]
    sums.all, sums.some = sums.all + losses[1].certain.mean, sums.some + losses[2].certain.mean
  end
end
lib.shell(("rm -rf '%s'"):format(work))
print(("mean of %d: 1/%.1f of the visits; mean regret %s for everything, %s when adaptive"):format(
  runs, runs / sums.share, percent(sums.all / runs), percent(sums.some / runs)))
os.exit(sums.share / runs <= 1 / 8 and sums.some - sums.all <= 0.01 * runs)
