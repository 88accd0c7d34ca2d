-- Derived times (derive.lua), on recorded launches: of the points that an adaptive sweep skips, and of those
-- that a coarse grid lacks, one in twenty may lie outside its own 95% interval, and hardly more do in other
-- launches, for small messages and for large ones. Nor are the intervals too wide to be useful.
local lu = require "luaunit"
local cell_records = require "rows.cell_records"
local derive = require "choose.derive"
local lib = require "recorded.lib"
local pooling = require "sweep.pooling"

local RUNS = 3
local recording = lib.read(os.getenv "SOURCE" .. "/tests/recorded/benchmark.tp2.host.csv")

local function rows_of(found)
  local out = {}
  for _, by_launch in pairs(found) do out[#out + 1] = pooling.row(by_launch) end
  table.sort(out, cell_records.before)
  return out
end

local SMALL = 32 << 10 -- bytes, at most
local BYTES = 2 -- of an element

-- The number of times derived from `known` that a fresh sweep has, too; the share of them outside their
-- intervals, in all, of small messages and of larger ones; and the median of half their intervals, in log2.
local function judge(known_of)
  local halves, count, outside = {}, { all = 0, small = 0, large = 0 }, { all = 0, small = 0, large = 0 }
  for seed = 1, RUNS do
    for _, fusion in ipairs(recording.fusions) do
      local order, spec = lib.shuffled(#recording.any.launches, seed), lib.spec(recording, fusion)
      local fresh = {}
      for _, row in ipairs(rows_of(lib.sweep(recording, order, lib.LAUNCHES + 1, { fusion = fusion }))) do
        fresh[cell_records.key(row)] = row
      end
      for _, derived in ipairs(derive.times(spec, recording.world_size, known_of(spec, order, fusion), {})) do
        local row = fresh[cell_records.key(derived)]
        if row then
          local half = 1.96 * derived.spread
          local is_outside = math.abs(math.log(row.time_us / derived.time_us, 2)) > half
          local is_small = derived.num_tokens * derived.hidden_size * BYTES <= SMALL
          halves[#halves + 1] = half
          for _, group in ipairs { "all", is_small and "small" or "large" } do
            count[group] = count[group] + 1
            if is_outside then outside[group] = outside[group] + 1 end
          end
        end
      end
    end
  end
  table.sort(halves)
  local share = {}
  for group, number in pairs(outside) do share[group] = number / count[group] end
  return count.all, share, halves[#halves // 2]
end

-- Every second size of each axis, and its ends.
local function coarse(spec, order, fusion)
  local function is_kept(list, value)
    for i, at in ipairs(list) do
      if at == value then return i % 2 == 1 or i == #list end
    end
  end
  local out = {}
  for _, row in ipairs(rows_of(lib.sweep(recording, order, 1, { on_grid = true, fusion = fusion }))) do
    local is_in = is_kept(spec.hidden_sizes, row.hidden_size) and is_kept(spec.num_tokens, row.num_tokens)
    if is_in then out[#out + 1] = row end
  end
  return out
end

local function adaptive(spec, order) return rows_of((lib.play(recording, spec, order, false))) end

local TestDerived = {}

function TestDerived.test_one_in_twenty_lies_outside_its_interval()
  for name, known_of in pairs { adaptive = adaptive, coarse = coarse } do
    local count, outside, half = judge(known_of)
    local words = ("%s: %.1f %% of %d outside, %.1f %% up to 32 KiB, %.1f %% above; half an interval is a " ..
      "factor of %.2f"):format(name, 100 * outside.all, count, 100 * outside.small, 100 * outside.large,
      2 ^ half)
    print(words)
    lu.assertTrue(count > 1000, words)
    lu.assertTrue(outside.all > 0.01 and outside.all < 0.08, words)
    lu.assertTrue(outside.small < 0.08 and outside.large < 0.08, words)
    lu.assertTrue(half < 1, words)
  end
end

return require "suites" { { "TestDerived", TestDerived } }
