-- planning.explore: the points that a sweep visits, played against known times.
local lu = require "luaunit"
local explore = require "planning.explore"
local cell_records = require "rows.cell_records"
local pooling = require "sweep.pooling"
local provisional_table = require "planning.provisional_table"

local TestExplore = {}

local function spec_with(changes)
  local spec = { dtypes = { "bfloat16" }, fusions = { "NONE" }, hidden_sizes = { 1024, 2048, 4096, 8192 },
    num_tokens = { 1, 4, 16, 64, 256, 1024 }, strategies = { "MPI", "ONESHOT", "TWOSHOT" },
    limits = { message_bytes = 1 << 30 }, table = { op = "allreduce", mode = "eager" } }
  for key, value in pairs(changes or {}) do spec[key] = value end
  return spec
end

-- ONESHOT up to about 256 KiB, TWOSHOT beyond; MPI never.
local function time_of(strategy, cell)
  local bytes = cell.size
  if strategy == "MPI" then return 20 + bytes / 1000 end
  if strategy == "ONESHOT" then return 1 + bytes / 4000 end
  return 33 + bytes / 8000
end

-- A planner, and the function that enters the times of one of its tasks.
local function new_planner(options, time)
  local spec, found = options.spec or spec_with(), {}
  options.spec, options.cells = spec, cell_records.cells(spec, 2)
  options.launches, options.now = options.launches or 3, options.now or function() return 0 end
  options.uncertain_cells = function()
    local with = {}
    for key, by_launch in pairs(found) do with[key] = pooling.row(by_launch) end
    return provisional_table.uncertain(spec, 2, with, {})
  end
  local planner = explore.new(options)
  return planner, function(task, launch)
    local rows = {}
    for i, strategy in ipairs(task.strategies) do
      local time_us = (time or time_of)(strategy, task.cell)
      rows[i] = cell_records.record(task.cell, strategy, { size = task.cell.size, time_us = time_us,
        min_us = time_us, low_us = time_us, high_us = time_us, samples = 10, placement = "dedicated" })
      local key = cell_records.key(rows[i])
      found[key] = found[key] or {}
      found[key][launch] = rows[i]
    end
    planner:take(task.cell, launch, rows, {})
  end
end

-- Plays the planner to its end. Returns the visits, { cell, launch, strategies }.
local function play(options, time)
  local now = 0
  options.now = function() return now end
  local planner, enter = new_planner(options, time)
  local visits, launch = {}, 0
  while planner:wants(launch + 1) do
    launch = launch + 1
    for task in function() return planner:next(launch) end do
      now = now + 1
      visits[#visits + 1] = { cell = task.cell, launch = launch, strategies = task.strategies }
      enter(task, launch)
      visits[#visits].outlook = planner:outlook()
      visits[#visits].rest_s = planner:expected_rest(options.likely or function() return 1 end)
    end
    lu.assertTrue(launch < 20)
  end
  return visits, planner
end

-- The visits of a planner without options. Tests share them, and change none.
local visits_without_options
local function plain_visits()
  visits_without_options = visits_without_options or play {}
  return visits_without_options
end

-- The points that every sweep visits: the corners of the grid, and the middle of its edges.
local function is_first(cell)
  local is_edge = cell.hidden_size == 1024 or cell.hidden_size == 8192
  return is_edge and (cell.num_tokens == 1 or cell.num_tokens == 16 or cell.num_tokens == 1024)
end

local function cells_of(visits)
  local seen, count = {}, 0
  for _, visit in ipairs(visits) do
    local key = cell_records.key(cell_records.record(visit.cell))
    if not seen[key] then seen[key], count = 0, count + 1 end
    seen[key] = seen[key] + 1
  end
  return seen, count
end

function TestExplore.test_exhaustive_visits_every_cell_with_all_in_every_launch()
  local visits = play { exhaustive = true, launches = 3 }
  local seen, count = cells_of(visits)
  lu.assertEquals({ count, #visits }, { 24, 72 })
  for _, times in pairs(seen) do lu.assertEquals(times, 3) end
  for _, visit in ipairs(visits) do lu.assertEquals(#visit.strategies, 3) end
end

function TestExplore.test_clear_regions_are_visited_at_few_points()
  local function one_wins(strategy, cell) return (strategy == "ONESHOT" and 1 or 5) * cell.size end
  local _, count = cells_of((play({}, one_wins)))
  lu.assertTrue(count < 24 // 2, count)
end

-- MPI is far slower everywhere: the first points show it, the others are measured without it.
function TestExplore.test_a_clearly_slower_strategy_is_measured_at_the_first_points_alone()
  local with, without = 0, 0
  for _, visit in ipairs(plain_visits()) do
    if table.concat(visit.strategies, " "):find("MPI", 1, true) then
      with = with + 1
      lu.assertTrue(is_first(visit.cell) and visit.launch == 1, cell_records.describe(visit.cell))
    else
      without = without + 1
    end
  end
  lu.assertTrue(with > 0 and without > 0)
end

-- AUTO is never chosen: it guides no visits, however fast, and has as many launches as the best.
function TestExplore.test_AUTO_comes_along_and_steers_nothing()
  local function names(visits, left_out)
    local lines = {}
    for i, visit in ipairs(visits) do
      local asked = table.concat(visit.strategies, " "):gsub(left_out, "")
      lines[i] = ("%d %s %s"):format(visit.launch, cell_records.describe(visit.cell), asked)
    end
    return lines
  end
  local without = plain_visits()
  local with = play({ spec = spec_with { strategies = { "MPI", "ONESHOT", "TWOSHOT", "AUTO" } } },
    function(strategy, cell) return strategy == "AUTO" and 0.001 or time_of(strategy, cell) end)
  lu.assertEquals(names(with, " AUTO"), names(without, " AUTO"))
  for _, visit in ipairs(with) do lu.assertEquals(visit.strategies[#visit.strategies], "AUTO") end
end

-- The planner visits points near the crossing of strategies; far from it only the first points.
function TestExplore.test_points_crowd_where_strategies_cross()
  local near = 0
  for _, visit in ipairs(plain_visits()) do
    if not is_first(visit.cell) then
      near = near + 1
      lu.assertTrue(math.abs(math.log(visit.cell.size / 256000, 2)) < 3, cell_records.describe(visit.cell))
    end
  end
  lu.assertTrue(near > 0)
end

function TestExplore.test_the_first_points_are_visited_in_two_launches()
  local launches = {}
  for _, visit in ipairs((play({}, function(strategy, cell)
    return (strategy == "ONESHOT" and 1 or 5) * cell.size
  end))) do
    lu.assertTrue(is_first(visit.cell))
    launches[visit.launch] = (launches[visit.launch] or 0) + 1
  end
  lu.assertEquals(launches, { 6, 6 })
end

-- A visit takes a second, and 100 where the message is long.
local function is_long(cell) return cell.size >= 1 << 24 end
local function seconds(cell) return is_long(cell) and 100 or 1 end

-- Whether a first point with a long visit comes after all with short ones, in each launch.
function TestExplore.test_short_visits_of_first_points_come_first()
  local visits, has_long = play { seconds = seconds }, {}
  for _, visit in ipairs(visits) do
    if is_long(visit.cell) then
      has_long[visit.launch] = true
    elseif is_first(visit.cell) then
      lu.assertNil(has_long[visit.launch], cell_records.describe(visit.cell))
    end
  end
  lu.assertTrue(has_long[1])
end

-- If all points are visited, long visits are anywhere among them: a machine that drifts slows all sizes.
function TestExplore.test_the_order_of_all_points_is_random()
  local has_long, is_mixed = false, false
  for _, visit in ipairs((play { seconds = seconds, exhaustive = true, launches = 1 })) do
    has_long, is_mixed = has_long or is_long(visit.cell), is_mixed or has_long and not is_long(visit.cell)
  end
  lu.assertTrue(is_mixed)
end

-- In the second launch, points at which a choice is uncertain come before the repetition of long visits. A
-- sweep without a budget still makes it.
function TestExplore.test_long_visits_are_repeated_after_uncertain_choices()
  local long, other = {}, {}
  for i, visit in ipairs((play { seconds = seconds })) do
    if visit.launch == 2 and is_long(visit.cell) then long[#long + 1] = i end
    if visit.launch == 2 and not is_first(visit.cell) then other[#other + 1] = i end
  end
  lu.assertEquals(#long, 1)
  lu.assertTrue(#other > 0 and other[#other] < long[1])
end

-- Two strategies 3 % apart, with and without noise that differs from launch to launch.
function TestExplore.test_points_where_launches_disagree_are_visited_more_often()
  local random = 1
  local slower = { MPI = 3, ONESHOT = 1, TWOSHOT = 1.03 }
  local function quiet(strategy, cell) return slower[strategy] * cell.size end
  local function noisy(strategy, cell)
    random = random * 48271 % 0x7fffffff
    return quiet(strategy, cell) * (0.9 + 0.2 * random / 0x7fffffff)
  end
  local function count_visits(time)
    local spec = spec_with { hidden_sizes = { 1024, 4096 }, num_tokens = { 1, 16, 256 } }
    return #play({ spec = spec, launches = 5 }, time)
  end
  lu.assertTrue(count_visits(noisy) > count_visits(quiet) + 10)
end

function TestExplore.test_a_budget_ends_it()
  local visits = play { exhaustive = true, ends_at = 10 }
  lu.assertEquals(#visits, 10)
end

local function small_enough(cell) return cell.size <= 1 << 20 end

function TestExplore.test_cells_beyond_the_budget_are_not_visited_and_are_unreached()
  for _, exhaustive in ipairs { true, false } do
    local visits, planner = play { exhaustive = exhaustive, launches = 2, fits = small_enough }
    for _, visit in ipairs(visits) do lu.assertTrue(small_enough(visit.cell)) end
    lu.assertTrue(#visits > 0)
    lu.assertTrue(planner:is_cut_off(3))
    local largest, smallest = {}, {}
    for _, cell in ipairs(cell_records.cells(spec_with(), 2)) do
      if cell.hidden_size == 8192 and cell.num_tokens == 1024 then largest = cell end
      if cell.hidden_size == 1024 and cell.num_tokens == 1 then smallest = cell end
    end
    lu.assertTrue(planner:is_unreached(largest))
    lu.assertFalse(planner:is_unreached(smallest))
  end
end

function TestExplore.test_a_finished_sweep_is_not_cut_off()
  for _, exhaustive in ipairs { true, false } do
    local visits, planner = play { exhaustive = exhaustive, ends_at = 1000 }
    lu.assertFalse(planner:is_cut_off(visits[#visits].launch + 1))
    for _, cell in ipairs(cell_records.cells(spec_with(), 2)) do
      lu.assertFalse(planner:is_unreached(cell))
    end
  end
end

-- Launches differ: each has a share of the budget, so that points are visited in several.
function TestExplore.test_a_launch_leaves_time_for_others()
  local random = 1
  local of_launch = {}
  for _, visit in ipairs((play({ launches = 5, ends_at = 60 }, function(_, cell)
    random = random * 48271 % 0x7fffffff
    return cell.size * (0.9 + 0.2 * random / 0x7fffffff)
  end))) do
    of_launch[visit.launch] = (of_launch[visit.launch] or 0) + 1
  end
  lu.assertTrue(#of_launch >= 4, #of_launch)
  lu.assertTrue(of_launch[1] <= 25, of_launch[1])
end

-- Choices that stay uncertain: their points get all launches.
function TestExplore.test_the_outlook_is_right_within_a_factor_of_three_and_from_a_quarter_on_of_two()
  local random = 1
  local visits = play({ launches = 5 }, function(_, cell)
    random = random * 48271 % 0x7fffffff
    return cell.size * (0.9 + 0.2 * random / 0x7fffffff)
  end)
  lu.assertTrue(#visits > 60, #visits)
  lu.assertTrue(visits[1].outlook > #visits / 3 and visits[1].outlook < 3 * #visits, visits[1].outlook)
  for i = #visits // 4, #visits - 10 do
    local ratio = visits[i].outlook / (#visits - i)
    lu.assertTrue(ratio > 0.5 and ratio < 2, ("%d of %d: %d"):format(i, #visits, visits[i].outlook))
  end
end

-- Visits of large messages take longer, and choices of small ones are soon certain.
function TestExplore.test_the_expected_rest_counts_visits_by_their_time()
  local random = 1
  local function likely(cell) return math.min(0.4, cell.size / 1e7) end
  local visits = play({ launches = 5, likely = likely }, function(name, cell)
    random = random * 48271 % 0x7fffffff
    local time_us = time_of(name, cell)
    return name == "MPI" and time_us or time_us * (0.7 + 0.6 * random / 0x7fffffff)
  end)
  local rest, judged = 0, 0
  for i = #visits, 1, -1 do
    local expected = visits[i].rest_s
    if expected and i >= #visits // 4 and i < #visits - 10 then
      lu.assertTrue(expected > rest / 2 and expected < rest * 2, ("%d of %d: %g, not %g"):format(i,
        #visits, expected, rest))
      judged = judged + 1
    end
    rest = rest + likely(visits[i].cell)
  end
  lu.assertNil(visits[1].rest_s)
  lu.assertTrue(judged > 10, judged)
end

-- A sweep over several TP sizes makes the planners of all before it measures any.
function TestExplore.test_the_budget_begins_when_measuring_begins()
  local now = 0
  local planner, enter = new_planner { launches = 1, now = function() return now end }
  now = 1000
  planner:begin(1010)
  local visits = 0
  for task in function() return planner:next(1) end do
    now, visits = now + 0.01, visits + 1
    enter(task, 1)
  end
  lu.assertTrue(visits > 6, visits) -- the first points are six
end

function TestExplore.test_a_budget_that_holds_it_all_ends_nothing()
  local function last_launch(visits) return visits[#visits].launch end
  local function count_cells(visits) return select(2, cells_of(visits)) end
  local visits = play { launches = 2 }
  local with_budget, planner = play { launches = 2, ends_at = 2 * #visits }
  lu.assertFalse(planner:is_cut_off(last_launch(with_budget) + 1))
  lu.assertEquals(count_cells(with_budget), count_cells(visits))
  with_budget, planner = play { launches = 2, ends_at = #visits + 1 }
  lu.assertFalse(planner:is_cut_off(last_launch(with_budget) + 1))
  lu.assertTrue(last_launch(with_budget) > last_launch(visits))
end

-- Between the grid's lines there are always more points; the message counts only cells of the grid.
function TestExplore.test_points_between_cells_that_were_not_reached_are_no_loss()
  local visits = plain_visits()
  for ends_at = 8, #visits + 10, 1 + #visits // 4 do
    local _, planner = play { ends_at = ends_at }
    local is_cut_off, unreached = planner:is_cut_off(20), 0
    for _, cell in ipairs(cell_records.cells(spec_with(), 2)) do
      if planner:is_unreached(cell) then unreached = unreached + 1 end
    end
    if is_cut_off then lu.assertTrue(unreached > 0 or planner:outlook() > 0) end
    if not is_cut_off then lu.assertEquals(unreached, 0) end
  end
end

function TestExplore.test_the_same_answers_give_the_same_plan()
  local function keys(visits)
    local out = {}
    for i, visit in ipairs(visits) do
      out[i] = cell_records.key(cell_records.record(visit.cell)) .. " " .. visit.launch
    end
    return out
  end
  lu.assertEquals(keys((play {})), keys(plain_visits()))
end

function TestExplore.test_kept_rows_are_not_requested()
  local planner = new_planner { launches = 2, exhaustive = true }
  for _, cell in ipairs(cell_records.cells(spec_with(), 2)) do
    for _, strategy in ipairs { "MPI", "ONESHOT" } do
      planner:keep(cell_records.record(cell, strategy, { time_us = time_of(strategy, cell) }))
    end
  end
  local task = planner:next(1)
  lu.assertEquals(task.strategies, { "TWOSHOT" })
end

-- The bench rejects TWOSHOT at 1 token and measures it at 16; whether it can at 4 is unknown before a visit.
function TestExplore.test_a_choice_without_a_strategy_that_may_do_the_cell_is_uncertain()
  local spec = spec_with { hidden_sizes = { 1024, 8192 }, num_tokens = { 1, 4, 16, 64 } }
  local with, without = {}, {}
  local function measure(cell, strategy)
    local time_us = 10 * (strategy == "MPI" and 4 or 1) * cell.num_tokens
    with[#with + 1] = cell_records.record(cell, strategy, { size = cell.size, time_us = time_us,
      min_us = time_us, low_us = time_us, high_us = time_us, samples = 10, placement = "dedicated",
      launches = { time_us, time_us } })
  end
  for _, cell in ipairs(cell_records.cells(spec, 2)) do
    local is_refused = cell.num_tokens == 1
    for _, strategy in ipairs { "MPI", "ONESHOT", "TWOSHOT" } do
      if is_refused and strategy == "TWOSHOT" then
        without[#without + 1] = cell_records.record(cell, strategy, { reason = "fewer tokens than ranks" })
      elseif is_refused or cell.num_tokens == 64 then
        measure(cell, strategy)
      end
    end
  end
  local function uncertain_at(num_tokens)
    local found, uncertain = 0, provisional_table.uncertain(spec, 2, with, without)
    for _, cell in ipairs(cell_records.cells(spec, 2)) do
      local is_there = cell.num_tokens == num_tokens
      if is_there and uncertain[cell_records.key(cell_records.record(cell))] then found = found + 1 end
    end
    return found
  end
  lu.assertEquals(uncertain_at(4), 2)
  lu.assertEquals(uncertain_at(1), 0)
  for _, cell in ipairs(cell_records.cells(spec, 2)) do
    if cell.num_tokens == 4 then measure(cell, "ONESHOT") end
  end
  lu.assertEquals(uncertain_at(4), 0)
end

return require "suites" { { "TestExplore", TestExplore } }
