-- Collectives of several ranks are matched by group, metadata and time: a lost collective of one rank does
-- not shift the rest.
local luaunit = require "luaunit"
local matching = require "trace.collectives.matching"

local PERIOD, WORLD = 1000, 4

-- A rank from a list of { name, elements, start, duration, group... }.
local function rank_of(number, list)
  local rank = { rank = number, events = {}, metadata = {} }
  for i, one in ipairs(list) do
    rank.metadata[i] = { kernel = "ncclDevKernel", name = one.name, in_elements = one.elements,
      out_elements = one.elements, dtype = "Float", group = one.group, ranks = one.ranks,
      group_size = one.group_size or WORLD }
    rank.events[i] = { start = one.start, duration = one.duration, stream = 1, uid = i, metadata = i }
  end
  return rank
end

-- `count` equal collectives; each rank arrives a little later than the one before, all end together. `tag` is
-- the number of the collective, so that matches can be checked.
local function calls(place, count, skip)
  local list = {}
  for i = 1, count do
    if not (skip and skip[i]) then
      local arrival = (place * 37 + i * 11) % 90
      list[#list + 1] = { name = "allreduce", elements = 4096, group = "0", start = i * PERIOD + arrival,
        duration = 200 - arrival, tag = i }
    end
  end
  return list
end

-- Ranks with these losses ([place] = set of numbers), and the lists that they were made from.
local function ranks_with(count, losses)
  local ranks, lists = {}, {}
  for place = 1, WORLD do
    lists[place] = calls(place, count, losses[place])
    ranks[place] = rank_of(place - 1, lists[place])
  end
  return ranks, lists
end

-- Fails where a collective has events of different numbers; returns how many ranks each number was found on.
local function found_of(collectives, lists)
  local found = {}
  for _, one in ipairs(collectives) do
    local number
    for place, item in pairs(one.items) do
      local tag = lists[place][item.event.uid].tag
      number = number or tag
      luaunit.assertEquals(tag, number, one.id)
    end
    luaunit.assertNil(found[number], "twice: " .. number)
    local count = 0
    for _ in pairs(one.items) do count = count + 1 end
    found[number] = count
  end
  return found
end

local function check_losses(count, losses)
  local ranks, lists = ranks_with(count, losses)
  local collectives = matching.match(ranks)
  local found = found_of(collectives, lists)
  for number = 1, count do
    local wanted = WORLD
    for _, set in pairs(losses) do wanted = wanted - (set[number] and 1 or 0) end
    luaunit.assertEquals(found[number] or 0, wanted, "collective " .. number)
  end
  luaunit.assertEquals(#collectives, count)
  for i, one in ipairs(collectives) do luaunit.assertEquals(one.id, "0_" .. i - 1) end
end

local TestMatching = {}

function TestMatching.test_whole_ranks_are_matched_in_order() check_losses(50, {}) end

function TestMatching.test_one_lost_event_leaves_the_others()
  for _, number in ipairs { 1, 2, 25, 49, 50 } do
    check_losses(50, { [2] = { [number] = true } })
    check_losses(50, { [1] = { [number] = true } })
  end
end

function TestMatching.test_losses_at_different_places_do_not_cancel_out()
  check_losses(50, { [1] = { [1] = true }, [2] = { [50] = true } })
  check_losses(50, { [1] = { [10] = true }, [2] = { [20] = true }, [4] = { [21] = true } })
  check_losses(50, { [3] = { [7] = true, [8] = true, [9] = true, [40] = true } })
end

function TestMatching.test_a_loss_on_every_rank_but_one_is_found()
  check_losses(20, { [1] = { [5] = true }, [2] = { [5] = true }, [3] = { [5] = true } })
end

function TestMatching.test_many_collectives_of_which_many_were_lost()
  local losses = { {}, {}, {}, {} }
  for number = 3, 2000, 17 do losses[number % WORLD + 1][number] = true end
  check_losses(2000, losses)
end

function TestMatching.test_metadata_distinguishes_where_times_do_not()
  -- Start and end are ambiguous here; only sizes distinguish.
  local function list(sizes)
    local out = {}
    for i, size in ipairs(sizes) do
      out[i] = { name = "allreduce", elements = size, group = "0", start = i * 10.0, duration = 500.0,
        tag = size }
    end
    return out
  end
  local lists = { list { 1, 2, 3, 4, 5, 6 }, list { 1, 2, 4, 5, 6 } }
  local collectives = matching.match { rank_of(0, lists[1]), rank_of(1, lists[2]) }
  luaunit.assertEquals(found_of(collectives, lists), { 2, 2, 1, 2, 2, 2 })
end

function TestMatching.test_groups_of_one_name_stay_apart()
  local function list(ranks) return { { name = "allreduce", elements = 8, group = "1", ranks = ranks,
    group_size = 2, start = 10.0, duration = 5.0 } } end
  local collectives = matching.match { rank_of(0, list "[0, 1]"), rank_of(1, list "[0, 1]"),
    rank_of(2, list "[2, 3]"), rank_of(3, list "[2, 3]") }
  luaunit.assertEquals(#collectives, 2)
  luaunit.assertEquals({ collectives[1].id, collectives[2].id }, { "1 [0, 1]_0", "1 [2, 3]_0" })
  luaunit.assertEquals({ collectives[1].expected, collectives[2].expected }, { 2, 2 })
end

function TestMatching.test_a_shortened_list_of_ranks_does_not_count()
  luaunit.assertTrue(matching.names_rank("[0, 1, 12]", 12))
  luaunit.assertFalse(matching.names_rank("[0, 1, 12]", 2))
  luaunit.assertNil(matching.names_rank("[0, 1, 2, ...]", 40))
  luaunit.assertNil(matching.names_rank(nil, 0))
  local function list() return { { name = "allreduce", elements = 8, group = "0", ranks = "[0, 1, ...]",
    start = 10.0, duration = 5.0 } } end
  local collectives = matching.match { rank_of(0, list()), rank_of(40, list()) }
  luaunit.assertEquals({ #collectives, collectives[1].expected }, { 1, 2 })
end

function TestMatching.test_a_send_belongs_to_the_receive_of_the_other_rank()
  local sender, receiver = {}, {}
  for i = 1, 10 do
    local one = { elements = 64, group = "p2p", group_size = 2, start = i * 100.0, duration = 30.0, tag = i }
    sender[i] = setmetatable({ name = i % 2 == 0 and "send" or "recv" }, { __index = one })
    if i ~= 4 then
      receiver[#receiver + 1] = setmetatable({ name = i % 2 == 0 and "recv" or "send" }, { __index = one })
    end
  end
  local lists = { sender, receiver }
  local collectives = matching.match { rank_of(0, sender), rank_of(1, receiver) }
  luaunit.assertEquals(found_of(collectives, lists), { 2, 2, 2, 1, 2, 2, 2, 2, 2, 2 })
end

function TestMatching.test_sends_between_unknown_ranks_stay_alone()
  local function list(name)
    return { { name = name, elements = 64, group = "0", start = 100.0, duration = 5.0 } }
  end
  local collectives = matching.match { rank_of(0, list "send"), rank_of(1, list "recv"),
    rank_of(2, list "send") }
  luaunit.assertEquals(#collectives, 3)
  luaunit.assertEquals(collectives[1].id, "0_rank0_0")
end

function TestMatching.test_clocks_that_are_apart_are_noticed()
  local ranks, lists = ranks_with(40, {})
  local events = ranks[3].events
  for i = 1, #events do events[i].start = events[i].start + 1234567.25 end
  local collectives, offsets = matching.match(ranks)
  luaunit.assertEquals(#collectives, 40)
  found_of(collectives, lists)
  luaunit.assertAlmostEquals(offsets[3], 1234567.25, 100)
  luaunit.assertNil(offsets[1])
end

function TestMatching.test_without_metadata_order_and_time_decide()
  local function plain(place, skip)
    local list = calls(place, 30, skip)
    for _, one in ipairs(list) do one.name, one.group, one.elements = nil, nil, nil end
    return list
  end
  local lists = { plain(1, {}), plain(2, { [11] = true }) }
  local collectives = matching.match { rank_of(0, lists[1]), rank_of(1, lists[2]) }
  local found = found_of(collectives, lists)
  for number = 1, 30 do luaunit.assertEquals(found[number], number == 11 and 1 or 2) end
  luaunit.assertEquals(collectives[1].id, "Unknown_Group_0")
end

return require "suites" { { "TestMatching", TestMatching } }
