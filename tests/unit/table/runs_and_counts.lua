-- Runs and counts of a table of core.choose, against the same from its segments, cells and options.
local choices = require "core.choose"
local luaunit = require "luaunit"
local rows = require "core.rows"

local tests = {}

-- A row without details, with these fields changed.
local function record(changes)
  local made = { world_size = 2, dtype = "bfloat16", num_tokens = 1, hidden_size = 1024, strategy = "ONESHOT",
    fusion = "NONE", op = "allreduce", time_us = 4.5, mode = "unknown", placement = "unknown" }
  for key, value in pairs(changes) do made[key] = value end
  made.size = made.num_tokens * made.hidden_size * 2
  return made
end

local function select(records, options)
  return assert(choices.select(assert(rows.of("rows.csv", records)), options))
end

-- Runs have the ends and the strategies of the segments, and a row is all of its segments together.
function tests.test_runs_and_rows_are_those_of_the_segments()
  math.randomseed(1)
  local records = {}
  for tokens = 1, 40 do
    for _, strategy in ipairs { "ONESHOT", "TWOSHOT", "MPI" } do
      if tokens % 9 ~= 0 then
        records[#records + 1] = record { num_tokens = tokens, strategy = strategy, time_us = math.random(10) }
      end
    end
  end
  local grid = { world_size = 2, dtype = "bfloat16", op = "allreduce", mode = "unknown", fusions = { "NONE" },
    hidden_sizes = { 1024 }, num_tokens = { 9, 18, 27, 36 } }
  local made = select(records, { cells = { grid } })
  local lasts, strategies = made:runs(1, 1, 1)
  local segments, margin = made:segments(1, 1, 1), math.huge
  luaunit.assertEquals(#lasts, #segments)
  for i, segment in ipairs(segments) do
    luaunit.assertEquals({ lasts[i], strategies[i] }, { segment.last, segment.strategy })
    margin = math.min(margin, segment.margin or margin)
  end
  local row = made:row(1, 1, 1)
  luaunit.assertEquals({ row.first, row.last, row.margin }, { 1, 40, margin })
  luaunit.assertEquals(row.strategy, segments[1].strategy)
end

-- The tally's median and extremes are those of the sorted margins.
function tests.test_a_tally_has_the_median_of_the_margins()
  math.randomseed(2)
  for cells_of_row = 1, 30 do
    local records, margins = {}, {}
    for tokens = 1, cells_of_row do
      for _, strategy in ipairs { "ONESHOT", "MPI" } do
        records[#records + 1] = record { num_tokens = tokens, strategy = strategy, time_us = math.random(4) }
      end
    end
    local made = select(records)
    for tokens = 1, cells_of_row do margins[tokens] = made:cell(1, 1, 1, tokens).margin end
    table.sort(margins)
    local tally = made:tally(1)
    luaunit.assertEquals(tally.least_margin, margins[1])
    local low, high = margins[(cells_of_row + 1) // 2], margins[cells_of_row // 2 + 1]
    luaunit.assertEquals(tally.margin, (low + high) / 2)
  end
end

-- With the option, cells of other data types stay, without a choice, and their rows count as before.
function tests.test_one_data_type_has_choices()
  local records = {}
  for _, dtype in ipairs { "bfloat16", "float32" } do
    for _, strategy in ipairs { "ONESHOT", "MPI", "AUTO" } do
      records[#records + 1] = record { dtype = dtype, strategy = strategy }
    end
  end
  local all, one = select(records), select(records, { dtype = "bfloat16" })
  luaunit.assertEquals(one:blocks(), all:blocks())
  luaunit.assertEquals(one:left_out(), all:left_out())
  luaunit.assertEquals(one:left_out().strategies, { AUTO = 2 })
  for b, block in ipairs(all:blocks()) do
    local expected = block.dtype == "bfloat16" and all:winners(b, 1, 1) or { 0 }
    luaunit.assertEquals(one:winners(b, 1, 1), expected)
  end
end

-- Of repeated rows the least counts, among those that do not compete, too.
function tests.test_repeated_rows_are_left_out_once()
  local records = {}
  for i, placement in ipairs { "loopback", "oversubscribed", "loopback", "oversubscribed" } do
    for _, strategy in ipairs { "ONESHOT", "AUTO" } do
      records[#records + 1] = record { placement = placement, strategy = strategy, time_us = 9 - i }
    end
  end
  local made = select(records, { least = true })
  luaunit.assertEquals(made:left_out(), { loopback = 0, strategies = { AUTO = 1 } })
end

return require "suites" { { "runs_and_counts", tests } }
