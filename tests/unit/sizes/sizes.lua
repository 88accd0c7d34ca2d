-- by_bytes.lua: the choices of formats by message size, by the rule of tables by shape. Takes a folder to
-- write to.
local file = require "core.file"
local lookup_rule = require "core.lookup_rule"
local luaunit = require "luaunit"
local model = require "formats.model"
local rows = require "core.rows"
local by_bytes = require "sizes.by_bytes"

local root = os.getenv "WORK"
local tests = {}

-- Rows of ONESHOT and TWOSHOT at hidden size 1024: { [tokens] = { ONESHOT = {...}, TWOSHOT = {...} } }, of
-- which each is a row's time_us, low_us, high_us and launches.
local function source_of(times)
  local records = {}
  for tokens, of in pairs(times) do
    for strategy, time in pairs(of) do
      records[#records + 1] = { world_size = 2, dtype = "bfloat16", size = tokens * 2048,
        num_tokens = tokens, hidden_size = 1024, strategy = strategy, fusion = "NONE", op = "allreduce",
        time_us = time[1], low_us = time[2], high_us = time[3], launches = time[4], mode = "eager",
        placement = "dedicated" }
    end
  end
  table.sort(records, function(a, b)
    return a.size < b.size or a.size == b.size and a.strategy < b.strategy
  end)
  os.execute(("rm -rf '%s'"):format(root)) -- of an earlier run
  assert(file.make_folder(root))
  local csv = root .. "/benchmark.tp2.host.csv"
  assert(file.write(csv, assert(rows.text(csv, records))))
  return model.load(root, "host", { against = "none" })
end

local function only_tp_table(source)
  local tp_tables = by_bytes.tp_tables(source, function() return true end)
  luaunit.assertEquals(#tp_tables, 1)
  return tp_tables[1]
end

-- "ONESHOT to BYTES, TWOSHOT"
local function words(tp_table)
  local out = {}
  for i, segment in ipairs(tp_table.segments) do
    out[i] = segment.strategy.name .. (segment.last and " to " .. segment.last or "")
  end
  return table.concat(out, ", ")
end

-- Launches differ by more than the strategies, which differ by the same in each of them.
local SLOW_AND_FAST = { { 10, 12, 14, 16 }, { 9, 10.8, 12.6, 14.4 } }

function tests.test_differences_in_each_launch_are_no_noise()
  local slow, fast = table.unpack(SLOW_AND_FAST)
  local tp_table = only_tp_table(source_of { [1] = { ONESHOT = { 1, 0.9, 1.1 }, TWOSHOT = { 2, 1.9, 2.1 } },
    [64] = { ONESHOT = { 13, 9, 17, slow }, TWOSHOT = { 11.7, 8, 15, fast } } })
  luaunit.assertEquals(words(tp_table), "ONESHOT to 16384, TWOSHOT")
  luaunit.assertAlmostEquals(tp_table.points[2].badness.ONESHOT, 13 / 11.7 - 1, 0.01)
end

-- A sweep skipped ONESHOT at 8 tokens, and all of 64.
function tests.test_derived_times_count_and_are_no_measured_sizes()
  local source = source_of { [1] = { ONESHOT = { 1, 0.9, 1.1 }, TWOSHOT = { 2, 1.9, 2.1 } },
    [8] = { TWOSHOT = { 8, 7.9, 8.1 } } }
  luaunit.assertEquals(words(only_tp_table(source)), "ONESHOT to 5792, TWOSHOT") -- it has no other time at 8
  local function derived(tokens, strategy, time_us)
    return { world_size = 2, dtype = "bfloat16", op = "allreduce", mode = "eager", fusion = "NONE",
      hidden_size = 1024, num_tokens = tokens, strategy = strategy, time_us = time_us,
      placement = "dedicated" }
  end
  local function with(...) return setmetatable({ derived = { ... } }, { __index = source }) end
  local first, second = derived(8, "ONESHOT", 7.9), derived(64, "ONESHOT", 64)
  local third = derived(64, "TWOSHOT", 40)
  local tp_table = only_tp_table(with(first, second, third))
  luaunit.assertEquals(words(tp_table), "ONESHOT to 46340, TWOSHOT")
  luaunit.assertEquals(tp_table.measured, { first = 2048, last = 16384 })
  first.fusion, second.fusion = "RESIDUAL_RMS_NORM", "RESIDUAL_RMS_NORM"
  luaunit.assertEquals(words(only_tp_table(with(first, second, third))), "ONESHOT to 5792, TWOSHOT")
end

-- Derived times beside measured ones exclude no strategy; a table of only derived times is not made.
function tests.test_derived_shapes_only_speak_where_no_other_does()
  local source = source_of { [8] = { MPI = { 1.5, 1.4, 1.6 }, TWOSHOT = { 4, 3.9, 4.1 } } }
  source.derived = {}
  for strategy, time_us in pairs { ONESHOT = 3, TWOSHOT = 2 } do
    table.insert(source.derived, { world_size = 2, dtype = "bfloat16", op = "allreduce", mode = "eager",
      fusion = "NONE", hidden_size = 2048, num_tokens = 4, strategy = strategy, time_us = time_us,
      placement = "dedicated" })
  end
  luaunit.assertEquals(words(only_tp_table(source)), "MPI")
  local function is_oneshot(strategy) return strategy.name == "ONESHOT" end
  luaunit.assertEquals(by_bytes.tp_tables(source, is_oneshot), {})
end

-- Launches disagree about which is faster: either may be.
function tests.test_launches_that_disagree_give_both_a_loss()
  local source = source_of { [64] = { ONESHOT = { 10, 8, 12, { 8, 12, 8, 12 } },
    TWOSHOT = { 10.1, 8, 12, { 12, 8, 12, 8.3 } } } }
  local losses = only_tp_table(source).points[1].badness
  luaunit.assertTrue(losses.ONESHOT > 0.02 and losses.TWOSHOT > 0.02, losses.ONESHOT .. " " .. losses.TWOSHOT)
end

function tests.test_without_launches_times_count_as_exact()
  local source = source_of { [64] = { ONESHOT = { 10, 8, 12 }, TWOSHOT = { 12, 8, 14 } } }
  luaunit.assertEquals(only_tp_table(source).points[1].badness, { ONESHOT = 0, TWOSHOT = 12 / 10 - 1 })
end

function tests.test_the_nearest_size_is_found_by_its_borders()
  local axis = { 1, 2, 3, 1000, 1 << 20, 2147483647, 4294967295 }
  local borders = lookup_rule.borders(axis)
  luaunit.assertEquals({ borders[1], borders[2], borders[3], borders[7] }, { 1, 2, 54, lookup_rule.LARGEST })
  for i = 1, #axis - 1 do
    luaunit.assertEquals(lookup_rule.nearest(axis, borders[i]), i)
    luaunit.assertEquals(lookup_rule.nearest(axis, borders[i] + 1), i + 1)
  end
  luaunit.assertEquals(lookup_rule.border(1 << 40, 1 << 42), 1 << 41)
  luaunit.assertEquals(lookup_rule.border((1 << 40) - 1, 1 << 42), (1 << 41) - 2)
end

return require "suites" { { "sizes", tests } }
