-- Whether the rounds of results have consistent steps: the GEMMs of a step take no longer than the step, with
-- communication and without it, and the cost is the median of their ratios.
--
-- usage: gentables lua check_rounds.lua RESULT.json...
local json = require "codec.json"
local file = require "core.file"
local median = require("base.statistics").median

local function near(a, b, what) assert(math.abs(a - b) <= 1e-4 * math.abs(b) + 1e-9, what) end

for _, path in ipairs(arg) do
  local result, costs = json.decode(file.read(path)), {}
  for i, round in ipairs(result.rounds) do
    local what = ("%s: round %d: "):format(path, i)
    assert(round.gemms_beside_us > 0 and round.gemms_alone_us > 0, what .. "GEMMs took no time")
    assert(round.gemms_beside_us <= round.traced_us, what .. "GEMMs take longer than their step")
    assert(round.gemms_alone_us <= round.gemms_traced_us, what .. "GEMMs alone take longer than their step")
    costs[i] = round.gemms_beside_us / round.gemms_alone_us - 1
  end
  near(median(costs), result.ratios.cost.median, path .. ": the cost is not that of its rounds")
end
