-- sequences.lua and ordering.lua: lists from lists, searches, tables of maps, and orders.
local luaunit = require "luaunit"
local ordering = require "base.ordering"
local sequences = require "base.sequences"

local tests = {}

function tests.test_lists_become_one_list_and_stay_as_they_are()
  local lists = { { 1, 2 }, {}, { 3 } }
  luaunit.assertEquals(sequences.join(lists), { 1, 2, 3 })
  luaunit.assertEquals(sequences.join({ 2, 1 }, function(count) return lists[count] end), { 1, 2 })
  luaunit.assertEquals(lists, { { 1, 2 }, {}, { 3 } })
end

function tests.test_the_first_result_that_is_true_counts()
  local function half(number) return number % 2 == 0 and number // 2 end
  luaunit.assertEquals(sequences.first({ 3, 8, 4 }, half), 4)
  luaunit.assertNil(sequences.first({ 3, 5 }, half))
end

function tests.test_of_equal_values_the_first_is_the_largest()
  local function length(text) return #text end
  luaunit.assertEquals(sequences.largest({ "a", "bcd", "efg" }, length), "bcd")
  luaunit.assertNil(sequences.largest({}, length))
end

function tests.test_values_have_their_indices()
  luaunit.assertEquals(sequences.indices { "a", "b" }, { a = 1, b = 2 })
end

function tests.test_the_last_table_counts_and_none_is_changed()
  local first, last = { a = 1, b = 2 }, { b = 3 }
  luaunit.assertEquals(sequences.merged(first, last), { a = 1, b = 3 })
  luaunit.assertEquals({ first, last }, { { a = 1, b = 2 }, { b = 3 } })
end

function tests.test_a_map_gets_a_table_once()
  local map = {}
  table.insert(sequences.at(map, "a"), 1)
  table.insert(sequences.at(map, "a"), 2)
  luaunit.assertEquals(map, { a = { 1, 2 } })
end

function tests.test_a_sorted_list_is_the_same_list()
  local list = { { at = 2 }, { at = 1 } }
  luaunit.assertTrue(ordering.sort(list, ordering.by "at") == list)
  luaunit.assertEquals(sequences.field(list, "at"), { 1, 2 })
end

return require "suites" { { "sequences", tests } }
