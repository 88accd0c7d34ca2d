-- Fields are printed in a documented order: json.object.
local json = require "codec.json"
local luaunit = require "luaunit"

local tests = {}

function tests.test_keys_come_in_the_order_that_was_given()
  local object = json.object { { "b", 1 }, { "a", json.object { { "d", 2 }, { "c", 0.5 } } } }
  luaunit.assertEquals(json.encode(object), '{\n  "b": 1,\n  "a": {\n    "d": 2,\n    "c": 0.5\n  }\n}')
  luaunit.assertEquals(object.a.c, 0.5)
end

function tests.test_nil_leaves_its_key_out()
  luaunit.assertEquals(json.encode(json.object { { "b", nil }, { "a", false } }), '{\n  "a": false\n}')
end

function tests.test_a_later_key_raises()
  local object = json.object { { "b", 1 } }
  object.a = 2
  luaunit.assertErrorMsgContains("were added", json.encode, object)
end

function tests.test_other_objects_are_sorted()
  luaunit.assertEquals(json.encode { b = 1, a = 2 }, '{\n  "a": 2,\n  "b": 1\n}')
end

return require "suites" { { "json_order", tests } }
