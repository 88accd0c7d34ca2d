-- The table at the end of short budgets, played on recorded rows with a clock (recorded/lib_clocked.lua).
--
-- usage: gentables lua tests/perf/budgets.lua RECORDED.csv [SEEDS [BYTE_S [TOKENS]]]
--   BYTE_S: seconds of a visit for each byte of a strategy's message, 6e-8 by default: visits of the largest
--   messages of a recording take many times as long as those of the smallest. TOKENS: the token counts of the
--   grid, 1,4,16,64,256 by default. For each budget it prints the mean number of visits, launches and
--   uncertain choices, and the loss of the table's C header at all recorded shapes, in the other launches, as
--   measured. To compare two planners, run it by turns with both, with the same seeds.
package.path = package.path .. ";" .. arg[0]:match("^(.*/)perf/") .. "?.lua"
local clocked = require "recorded.lib_clocked"
local json = require "codec.json"
local lib = require "recorded.lib"

local BUDGETS_S = { 3, 5, 8, 14, 24 }

local path, seeds, byte_s = arg[1], tonumber(arg[2] or 5), tonumber(arg[3] or 6e-8)
local tokens = lib.numbers(arg[4] or "1,2,4,8,16,32,64,128,256")
assert(path, "usage: gentables lua tests/perf/budgets.lua RECORDED.csv [SEEDS [BYTE_S [TOKENS]]]")
local recording = lib.read(path)
local work = os.tmpname()
os.remove(work)

local function count(set)
  local total = 0
  for _ in pairs(set) do total = total + 1 end
  return total
end

-- The loss of the table of these visits on fresh rows, as measured.
local function loss_of(spec, visits, fresh)
  local folder = work .. "/swept"
  lib.write_rows(folder, recording, spec, visits)
  local command = "'%s' generate --data-dir '%s' --arch host --out '%s' --formats c,table --against none 2>&1"
  lib.shell(command:format(gentables.program, folder, folder))
  return json.decode((lib.shell(("'%s' regret --table '%s/allreduce_table.h' --rows '%s' --json"):format(
    gentables.program, folder, fresh)))).raw
end

-- The figures of one sweep.
local function play(seed, budget_s)
  local order, spec = lib.shuffled(#recording.any.launches, seed), lib.spec(recording)
  local fresh = lib.write_rows(work .. "/fresh", recording, spec,
    lib.sweep(recording, order, lib.LAUNCHES + 1, {}))
  spec.num_tokens = tokens
  local sweep = clocked.new(recording, spec, table.move(order, 1, lib.LAUNCHES, 1, {}), byte_s)
  sweep:measure(budget_s)
  local loss = loss_of(spec, sweep.visits, fresh)
  return { visits = #sweep.history, launches = sweep.launch, uncertain = count(sweep:uncertain()),
    mean = 100 * loss.mean, worst = 100 * loss.worst }
end

for _, budget_s in ipairs(BUDGETS_S) do
  local sums = { visits = 0, launches = 0, uncertain = 0, mean = 0, worst = 0 }
  for seed = 1, seeds do
    for name, value in pairs(play(seed, budget_s)) do sums[name] = sums[name] + value / seeds end
  end
  print(("%4g s: %5.1f visits, %3.1f launches, %4.1f uncertain; loss %.2f %% in the mean, %.1f %% at worst")
    :format(budget_s, sums.visits, sums.launches, sums.uncertain, sums.mean, sums.worst))
end
lib.shell(("rm -rf '%s'"):format(work))
