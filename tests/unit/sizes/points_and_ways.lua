-- core.sizes against the same results found in a straightforward way, for random times: losses, choices, the
-- cheapest path of a reader's ways, and its misses.
local lists = require "lists.lists"
local lookup_rule = require "core.lookup_rule"
local luaunit = require "luaunit"
local rows = require "core.rows"
local sequences = require "base.sequences"
local sizes = require "core.sizes"

local tests = {}

local NAMES = { "NCCL", "NCCL_SYMMETRIC", "ONESHOT", "TWOSHOT" }
local WAY_OF = { NCCL = "library", NCCL_SYMMETRIC = "library", ONESHOT = "push", TWOSHOT = "pull" }
local TOKENS, HIDDEN_SIZES, REGRET = { 1, 2, 3, 4, 6, 8, 12, 16, 24, 32 }, { 128, 256, 384 }, 0.02

local function way_of(name) return WAY_OF[name] end

-- Rows with some times missing, in random order; of shapes with equal bytes there are several.
local function random_records()
  local records = {}
  for _, tokens in ipairs(TOKENS) do
    for _, hidden_size in ipairs(HIDDEN_SIZES) do
      for _, name in ipairs(NAMES) do
        local record = { world_size = 2, dtype = "bfloat16", size = tokens * hidden_size * 2,
          num_tokens = tokens, hidden_size = hidden_size, strategy = name, fusion = "NONE", op = "allreduce",
          time_us = math.random(10, 30) / 7, mode = "graph",
          placement = math.random(20) == 1 and "loopback" or "dedicated" }
        if math.random(8) > 1 then table.insert(records, math.random(#records + 1), record) end
      end
    end
  end
  return records
end

local function points_of(records)
  local all = assert(rows.of("random", records))
  local slice = all:slices()[1]
  luaunit.assertEquals(#all:slices(), 1)
  local times = sizes.times(all, slice, {}, false)
  return times:points(all, slice, { may_win = sequences.set(NAMES) })
end

-- ---- the straightforward way

-- size -> list of shapes, each with its times by strategy
local function shapes_of(records)
  local shapes, by_size = {}, {}
  for _, record in ipairs(records) do
    if record.placement ~= "loopback" then
      local key = record.num_tokens .. "x" .. record.hidden_size
      if not shapes[key] then
        shapes[key] = {}
        table.insert(sequences.at(by_size, record.size), shapes[key])
      end
      shapes[key][record.strategy] = record.time_us
    end
  end
  return by_size
end

local function mean_loss(shapes, name)
  local sum = 0
  for _, times in ipairs(shapes) do
    local least = math.huge
    for _, time_us in pairs(times) do least = math.min(least, time_us) end
    if not times[name] then return nil end
    sum = sum + times[name] / least - 1
  end
  return sum / #shapes
end

local function expected_points(records)
  local points = {}
  for size, shapes in pairs(shapes_of(records)) do
    local badness = {}
    for _, name in ipairs(NAMES) do badness[name] = mean_loss(shapes, name) end
    if next(badness) then points[#points + 1] = { size = size, badness = badness } end
  end
  table.sort(points, function(a, b) return a.size < b.size end)
  return points
end

local function loss_of(point, way)
  local least
  for name, loss in pairs(point.badness) do
    if WAY_OF[name] == way then least = math.min(least or loss, loss) end
  end
  return least
end

-- The least cost of all paths over points[p ...] from a state on, tried one by one.
local function least_cost(points, states, p, state)
  if p > #points then return 0 end
  local way = states[state].most and points[p].size > states[state].most and states[state].beyond
    or states[state].way
  local least = math.huge
  for next_state, of in ipairs(states) do
    local is_after = next_state == state or sequences.set(of.after)[state]
    local change = next_state == state and 0 or REGRET
    if is_after then least = math.min(least, change + least_cost(points, states, p + 1, next_state)) end
  end
  return (states[state].is_off and math.huge or loss_of(points[p], way) or 1e6) + (p < #points and least or 0)
end

-- The cost of a path of ways:path().
local function cost_of(points, states, path)
  local cost, changes = 0, -1
  for state, range in ipairs(path) do
    changes = changes + (range and 1 or 0)
    for p = range and range.first or 1, range and range.last or 0 do
      local of = states[state]
      local way = of.most and points[p].size > of.most and of.beyond or of.way
      cost = cost + (loss_of(points[p], way) or 1e6)
    end
  end
  return cost + changes * REGRET
end

-- ---- the tests

function tests.test_losses_are_means_over_the_shapes_of_a_size()
  for _ = 1, 30 do
    local records = random_records()
    local found, expected = points_of(records):list(), expected_points(records)
    luaunit.assertEquals(#found, #expected)
    for p, point in ipairs(found) do
      luaunit.assertEquals(point.size, expected[p].size)
      for _, name in ipairs(NAMES) do
        local loss = expected[p].badness[name]
        luaunit.assertEquals(point.badness[name] == nil, loss == nil)
        if loss then luaunit.assertAlmostEquals(point.badness[name], loss, 1e-12) end
      end
    end
  end
end

function tests.test_segments_and_ranges_have_the_choices()
  local points = points_of(random_records())
  points:choose(0)
  local list, segments, best = points:list(), points:segments(lists.strategies), {}
  for p, point in ipairs(list) do
    local segment = sequences.find(segments, function(of) return not of.last or point.size <= of.last end)
    best[p] = segment.strategy.name
    for name, loss in pairs(point.badness) do
      luaunit.assertTrue(point.badness[best[p]] <= loss, name)
    end
  end
  luaunit.assertEquals(segments[1].first, 0)
  for s = 2, #segments do luaunit.assertEquals(segments[s].first, segments[s - 1].last + 1) end
  local lasts, is_one_shot = points:ranges { ONESHOT = true }
  for r, last in ipairs(lasts) do
    for p, point in ipairs(list) do
      if point.size <= (last or math.huge) and best[p] then
        luaunit.assertEquals(best[p] == "ONESHOT", is_one_shot[r])
        best[p] = nil
      end
    end
  end
  local without = points:without("ONESHOT", 0)
  for _, point in ipairs(without:list()) do luaunit.assertNil(point.badness.ONESHOT) end
end

function tests.test_no_path_costs_less_than_the_one_found()
  local states = { { way = "push", after = {}, most = 4000, beyond = "library" },
    { way = "pull", after = { 1 } }, { way = "library", after = { 1, 2 } }, { way = "pull", after = { 3 } } }
  for round = 1, 20 do
    local points = points_of(random_records())
    points:choose(REGRET)
    states[2].is_off = round % 4 == 0
    local list, most = points:list(), 3000
    local within = sequences.filter(list, function(point) return point.size <= most end)
    local path, count = points:ways(way_of):path(states, REGRET, most)
    luaunit.assertEquals(count, #within)
    local least = math.huge
    for state in ipairs(states) do least = math.min(least, least_cost(within, states, 1, state)) end
    luaunit.assertAlmostEquals(cost_of(within, states, path), least, 1e-9 * least)
  end
end

-- Misses, which are columns, one by one.
local function listed(misses)
  return sequences.map(misses.first, function(first, i)
    return { first = first, last = misses.last[i] or nil, chosen = misses.chosen[i],
      answered = misses.answered[i], mean = misses.mean[i] or nil, most = misses.most[i] or nil }
  end)
end

-- Each size is looked up in the misses and compared with the choice and the answer.
function tests.test_misses_are_the_sizes_with_another_answer()
  local answers, step = { { last = 511, way = "push" }, { last = 512, way = "none" },
    { last = 5000, way = "pull" }, { way = "none" } }, 16
  for _ = 1, 20 do
    local points = points_of(random_records())
    points:choose(REGRET)
    local segments = points:segments(lists.strategies)
    local misses = listed(points:ways(way_of):misses(answers, step))
    local m = 1
    for size = step, 1 << 15, step do
      local segment = sequences.find(segments, function(of) return not of.last or size <= of.last end)
      local answer = sequences.find(answers, function(of) return not of.last or size <= of.last end)
      while misses[m] and (misses[m].last or math.huge) < size do m = m + 1 end
      local miss = misses[m] and misses[m].first <= size and misses[m] or nil
      luaunit.assertEquals(miss ~= nil, WAY_OF[segment.strategy.name] ~= answer.way, size)
      luaunit.assertEquals(miss and miss.answered, miss and answer.way)
      luaunit.assertEquals(miss and miss.chosen, miss and WAY_OF[segment.strategy.name])
    end
  end
end

function tests.test_a_miss_has_the_losses_of_its_points()
  local points = points_of(random_records())
  points:choose(REGRET)
  for _, miss in ipairs(listed(points:ways(way_of):misses({ { way = "pull" } }, 1))) do
    local sum, most, count = 0, 0, 0
    for _, point in ipairs(points:list()) do
      local mine, other = loss_of(point, miss.chosen), loss_of(point, "pull")
      if point.size >= miss.first and point.size <= (miss.last or math.huge) and mine and other then
        local loss = (1 + other) / (1 + mine) - 1
        sum, most, count = sum + loss, math.max(most, loss), count + 1
      end
    end
    luaunit.assertEquals(miss.mean, count > 0 and sum / count or nil)
    luaunit.assertEquals(miss.most, count > 0 and most or nil)
  end
end

function tests.test_other_times_count_where_nothing_was_measured()
  local all = assert(rows.of("one", { { world_size = 2, dtype = "bfloat16", size = 512, num_tokens = 2,
    hidden_size = 128, strategy = "NCCL", fusion = "NONE", op = "allreduce", time_us = 4, mode = "graph",
    placement = "dedicated" } }))
  local slice = all:slices()[1]
  local function other(tokens, name, time_us)
    return { num_tokens = tokens, hidden_size = 128, size = tokens * 256, strategy = name, time_us = time_us,
      is_measured = false }
  end
  local times = sizes.times(all, slice, { other(2, "ONESHOT", 5), other(4, "ONESHOT", 3) }, false)
  luaunit.assertEquals(times:strategies(), { NCCL = true, ONESHOT = true })
  local points = times:points(all, slice, { may_win = { NCCL = true, ONESHOT = true } })
  luaunit.assertEquals(points:list(), { { size = 512, badness = { NCCL = 0, ONESHOT = 0.25 } },
    { size = 1024, badness = { ONESHOT = 0 } } })
  luaunit.assertEquals({ points:measured() }, { 512, 512 })
  points:choose(0)
  luaunit.assertEquals(points:segments(lists.strategies)[1].last, lookup_rule.border(512, 1024))
end

return require "suites" { { "points_and_ways", tests } }
