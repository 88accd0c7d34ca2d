-- Choices from rows with launches (evidence.c, cell_losses.c): large bins, strategies that are slow at some
-- shapes, at all, or cannot run in a part of a bin.
local choices = require "core.choose"
local luaunit = require "luaunit"
local rows = require "core.rows"

local tests = {}

-- How much a launch differs from the others, for each strategy.
local SCATTER = { MPI = { 1, 1.01, 0.99 }, ONESHOT = { 1.01, 1, 0.99 }, TWOSHOT = { 0.99, 1, 1.01 } }

local function record(strategy, num_tokens, hidden_size, time_us, bits)
  local launches = {}
  for i, share in ipairs(SCATTER[strategy]) do launches[i] = share * time_us end
  return { world_size = 2, dtype = "bfloat16", size = 2 * num_tokens * hidden_size, num_tokens = num_tokens,
    hidden_size = hidden_size, strategy = strategy, fusion = "NONE", op = "allreduce", time_us = time_us,
    mode = "eager", placement = "dedicated", launches = launches, bits = bits }
end

local function select(records, options)
  return assert(choices.select(assert(rows.of("made", records)), options))
end

function tests.test_a_bin_of_many_cells_takes_no_longer_than_one_of_few()
  local records = {}
  for i = 0, 19 do
    for j = 0, 19 do
      for strategy, time_us in pairs { MPI = 11, ONESHOT = 10, TWOSHOT = 10.5 } do
        records[#records + 1] = record(strategy, 512 + 25 * i, 1024 + 50 * j, time_us)
      end
    end
  end
  local cell = select(records, { lookup = "log2" }):cell(1, 1, 1, 1)
  luaunit.assertEquals({ cell.strategy, cell.state }, { "ONESHOT", "certain" })
end

-- The bin of 64 tokens reaches to 4095.
function tests.test_a_strategy_that_is_slow_at_the_cells_own_shape_may_win_its_bin()
  local made = select({ record("ONESHOT", 64, 1024, 10), record("TWOSHOT", 64, 1024, 20),
    record("ONESHOT", 4096, 1024, 1000), record("TWOSHOT", 4096, 1024, 250) },
    { lookup = "floor", workload = { { hidden_size = 1024, num_tokens = 2048, weight = 1 } } })
  luaunit.assertEquals(made:cell(1, 1, 1, 1).strategy, "TWOSHOT")
end

function tests.test_what_cannot_run_in_a_part_of_the_bin_does_not_win_it()
  local made = select({ record("ONESHOT", 512, 1024, 10), record("TWOSHOT", 512, 1024, 10.5),
    record("TWOSHOT", 768, 1024, 15) }, { lookup = "log2" })
  luaunit.assertEquals(made:cell(1, 1, 1, 1).strategy, "TWOSHOT")
end

-- The confidence between two measured token counts, of ranks with this placement.
local function confidence_between(placement)
  local records = {}
  for _, tokens in ipairs { 1, 16, 64 } do
    for strategy, time_us in pairs { ONESHOT = 10, TWOSHOT = 17 } do
      local row = record(strategy, tokens, 1024, time_us)
      row.placement = placement
      records[#records + 1] = row
    end
  end
  local derived = {}
  for strategy, time_us in pairs { ONESHOT = 10, TWOSHOT = 17 } do
    local time = record(strategy, 4, 1024, time_us)
    time.placement = placement
    derived[#derived + 1] = time
  end
  local cells = { { world_size = 2, dtype = "bfloat16", op = "allreduce", mode = "eager",
    fusions = { "NONE" }, hidden_sizes = { 1024 }, num_tokens = { 4 } } }
  return select(records, { derived = derived, cells = cells }):cell(1, 1, 1, 2).confidence
end

function tests.test_unmeasured_cells_of_oversubscribed_ranks_are_never_quite_certain()
  luaunit.assertEquals(confidence_between "dedicated", 1)
  luaunit.assertEquals(confidence_between "oversubscribed", 0.97)
end

-- Strategies that are far from the fastest one have evidence where only they have the wanted bits.
function tests.test_slow_strategies_have_a_confidence_where_only_they_may_win()
  local records = {}
  for _, tokens in ipairs { 1, 16, 256, 4096 } do
    records[#records + 1] = record("MPI", tokens, 1024, 30, "000000000000000a")
    records[#records + 1] = record("TWOSHOT", tokens, 1024, 33, "000000000000000a")
    records[#records + 1] = record("ONESHOT", tokens, 1024, 10, "000000000000000b")
  end
  local cell = select(records, { same_bits_as = "MPI" }):cell(1, 1, 1, 1)
  luaunit.assertEquals(cell.strategy, "MPI")
  luaunit.assertTrue((cell.confidence or 0) > 0.9, tostring(cell.confidence))
end

-- MPI, first in the list, is far from the fastest one and has no confidence; the others hardly differ.
function tests.test_noise_makes_no_borders_beside_a_slow_strategy()
  local records = {}
  for i, tokens in ipairs { 1, 64, 4096 } do
    records[#records + 1] = record("MPI", tokens, 1024, 40)
    records[#records + 1] = record("ONESHOT", tokens, 1024, i == 2 and 10.01 or 10)
    records[#records + 1] = record("TWOSHOT", tokens, 1024, i == 2 and 10 or 10.01)
  end
  local winners = select(records):winners(1, 1, 1)
  luaunit.assertEquals(winners, { winners[1], winners[1], winners[1] })
end

function tests.test_nothing_depends_on_the_order_of_rows()
  local records, reversed = {}, {}
  for _, tokens in ipairs { 1, 16, 256 } do
    for strategy, time_us in pairs { MPI = 11, ONESHOT = 10, TWOSHOT = 10.2 } do
      local made = record(strategy, tokens, 1024, time_us)
      records[#records + 1] = made
      table.insert(reversed, 1, made)
    end
  end
  local options = { lookup = "nearest" }
  luaunit.assertEquals(select(reversed, options):text("host"), select(records, options):text("host"))
end

return require "suites" { { "choices from launches", tests } }
