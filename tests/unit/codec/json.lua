-- json.lua: the values that are read from JSON, and that a value is always written as the same text.
local lu = require "luaunit"
local json = require "codec.json"

local TestJson = {}

function TestJson.test_values_are_decoded()
  local value = json.decode('{"a":[1,2.5,null,true],"b":"\\u00e9\\n","c":{},"d":[]}')
  lu.assertEquals(value.a[1], 1)
  lu.assertEquals(math.type(value.a[1]), "integer")
  lu.assertEquals(value.a[2], 2.5)
  lu.assertIs(value.a[3], json.null)
  lu.assertEquals(value.a[4], true)
  lu.assertEquals(value.b, "\u{e9}\n")
end

function TestJson.test_encoding_sorts_and_indents()
  local text = json.encode { b = { 1, 2 }, a = { y = "q\"\\\n\1", x = 0.1 }, c = { { k = 1 } }, d = 1.0 }
  lu.assertEquals(text, [[
{
  "a": {
    "x": 0.1,
    "y": "q\"\\\n\u0001"
  },
  "b": [1, 2],
  "c": [
    {
      "k": 1
    }
  ],
  "d": 1.0
}]])
end

function TestJson.test_a_round_trip_changes_nothing()
  local text = '{\n  "a": [],\n  "b": {},\n  "c": null,\n  "d": [1, -9007199254740993, 0.1, 1e+300]\n}'
  lu.assertEquals(json.encode(json.decode(text)), text)
end

-- Names come from foreign files and programs, which may cut a character.
function TestJson.test_bytes_that_are_no_utf8_are_replaced()
  lu.assertEquals(json.encode { ["\xc3"] = "\u{20ac}\xe2\x82|\xed\xa0\x80\u{1f600}\xff" },
    '{\n  "\u{fffd}": "\u{20ac}\u{fffd}\u{fffd}|\u{fffd}\u{fffd}\u{fffd}\u{1f600}\u{fffd}"\n}')
  lu.assertEquals(json.decode(json.compact("\xff")), "\u{fffd}")
end

-- SGLang writes "request_rate": Infinity.
function TestJson.test_pick_takes_the_numbers_that_python_adds()
  local text = '{"a": Infinity, "b":-Infinity,"c":[NaN], "d": "\\"NaN\\\\", "e": 2, "f": "Infinity"}'
  local picked = json.pick(text, "a", "b", "c", "d", "e", "f", "g")
  lu.assertIs(picked.a, json.null)
  lu.assertIs(picked.b, json.null)
  lu.assertIs(picked.c[1], json.null)
  lu.assertEquals({ picked.d, picked.e, picked.f, picked.g }, { '"NaN\\', 2, "Infinity" })
  for _, number in ipairs { "Infinit", "-NaN", "1Infinity", "NaN1", "--Infinity" } do
    lu.assertNil((json.pick(('{"a": 1, "b": %s}'):format(number), "a")), number)
  end
end

function TestJson.test_plain_values_stand_alone()
  lu.assertEquals(json.decode("7"), 7)
  lu.assertEquals(json.decode('"x"'), "x")
  lu.assertEquals(json.encode(json.array {}), "[]")
end

function TestJson.test_broken_text_is_refused()
  for _, text in ipairs { "", "{", "[1,]", "{'a':1}", "[1] 2", "\"\xff\"", ("["):rep(100000) } do
    local value, message = json.decode(text)
    lu.assertNil(value, text:sub(1, 20))
    lu.assertIsString(message)
  end
end

function TestJson.test_values_that_json_cannot_express_are_rejected()
  for _, value in ipairs { 0 / 0, math.huge, print, { [true] = 1 } } do
    lu.assertErrorMsgContains("JSON has no", json.encode, value)
  end
end

-- What is printed in a documented order: json.object.
function TestJson.test_keys_come_in_the_order_that_was_given()
  local object = json.object { { "b", 1 }, { "a", json.object { { "d", 2 }, { "c", 0.5 } } } }
  lu.assertEquals(json.encode(object), '{\n  "b": 1,\n  "a": {\n    "d": 2,\n    "c": 0.5\n  }\n}')
  lu.assertEquals(object.a.c, 0.5)
end

function TestJson.test_nil_leaves_its_key_out()
  lu.assertEquals(json.encode(json.object { { "b", nil }, { "a", false } }), '{\n  "a": false\n}')
end

function TestJson.test_a_later_key_raises()
  local object = json.object { { "b", 1 } }
  object.a = 2
  lu.assertErrorMsgContains("were added", json.encode, object)
end

return require "suites" { { "TestJson", TestJson } }
