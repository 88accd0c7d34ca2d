-- Arguments of ops are read as JSON: as Python literals for the sheets, as values for performance models.
local file = require "core.file"
local json = require "codec.json"
local luaunit = require "luaunit"

-- An argument, given as the trace has it: the literal and the value, or nil. `as_lists`: lists have brackets.
local function read(written, as_lists)
  local folder = os.getenv("WORK")
  assert(file.make_folder(folder))
  local path = folder .. "/arguments.json"
  assert(file.write(path, ([[{"traceEvents": [
    {"ph": "X", "cat": "cpu_op", "name": "my::op", "pid": 1, "tid": 1, "ts": 0, "dur": 9,
     "args": {"Concrete Inputs": %s}}]}]]):format(written)))
  local analysis = assert(require("core.trace").open(path)):analysis()
  return (select(4, analysis:arguments(0, as_lists))), (select(4, analysis:argument_values(0)))
end

-- The same for the content of a text, which need not be JSON.
local function read_text(text, as_lists) return read(json.compact(text), as_lists) end

local TestArguments = {}

function TestArguments.test_lists_of_texts_numbers_and_words()
  local text, value = read([=[["\u00e9\ud83d\ude00\u0001\"\\\n", 1.5e3, true, null, [ -2 ] ]]=])
  luaunit.assertEquals(text, [[('é😀\x01"\\\n', 1.5e3, True, None, (-2,))]])
  luaunit.assertEquals(value, { "é😀\1\"\\\n", 1500.0, true, false, { -2 } })
end

function TestArguments.test_tuples_and_lists_of_any_length()
  for written, literals in pairs {
    ["[]"] = { "()", "[]" },
    ["[7]"] = { "(7,)", "[7]" },
    ["[7,8]"] = { "(7, 8)", "[7, 8]" },
    ["[[],[[1]]]"] = { "((), ((1,),))", "[[], [[1]]]" },
  } do
    luaunit.assertEquals(read(written), literals[1])
    luaunit.assertEquals(read(written, true), literals[2])
  end
  luaunit.assertEquals(select(2, read("[[],[[1]]]")), { {}, { { 1 } } })
end

function TestArguments.test_values_without_a_list()
  for text, result in pairs {
    ["-12"] = { "-12", -12 },
    ['"int"'] = { "'int'", "int" },
    ["true"] = { "True", true },
    ["false"] = { "False", false },
    ["null"] = { "None", false },
    [" [ 1 ,\n2 ] "] = { "(1, 2)", { 1, 2 } },
  } do
    luaunit.assertEquals({ read_text(text) }, result)
  end
end

-- A literal has all digits, also those that are too many for a number.
function TestArguments.test_numbers_are_written_as_in_the_trace()
  local numbers = { "0", "-0", "0.10", "1E5", "2e-07", "9223372036854775807",
    "123456789012345678901234567890", "1e400" }
  local text, value = read("[" .. table.concat(numbers, " ,") .. "]")
  luaunit.assertEquals(text, "(" .. table.concat(numbers, ", ") .. ")")
  luaunit.assertEquals(value,
    { 0, 0, 0.1, 1e5, 2e-07, math.maxinteger, 123456789012345678901234567890.0, math.huge })
  luaunit.assertEquals(math.type(value[1]), "integer")
  luaunit.assertEquals(math.type(value[4]), "float")
end

function TestArguments.test_lists_up_to_a_depth_of_64()
  local function nested(depth) return ("["):rep(depth) .. ("]"):rep(depth) end
  local text, value = read(nested(64))
  luaunit.assertEquals(text, ("("):rep(63) .. "()" .. (",)"):rep(63))
  for _ = 1, 63 do value = value[1] end
  luaunit.assertEquals(value, {})
  luaunit.assertEquals({ read(nested(65)) }, {})
  luaunit.assertEquals({ read(nested(2000)) }, {})
end

function TestArguments.test_other_texts_are_no_arguments()
  for _, text in ipairs { " ", "1,2", "[1],[2]", "1] [2", "[1]]", "[[1]", "]", "[1] x", "1 2", '"a" "b"',
    "[1 2]", "[1,]", "[,1]", '["a]', '["a"b]', "nul", "truefalse", "[tru]", "x", '{"a":1}', '[{"a":1}]' } do
    luaunit.assertEquals({ read_text(text) }, {}, text)
  end
end

function TestArguments.test_numbers_that_are_not_json()
  for _, text in ipairs { "01", "-", "+1", ".5", "1.", "1e", "0x10", "1-2", "NaN", "Infinity",
    "-Infinity" } do
    luaunit.assertEquals({ read_text(text) }, {}, text)
    luaunit.assertEquals({ read_text("[1," .. text .. "]") }, {}, text)
  end
end

function TestArguments.test_texts_that_are_not_json()
  for _, text in ipairs { '"\\ud83d"', '"\\ud83dx"', '"\\ud83d\\u0041"', '"\\u12g4"', '"\\x41"', '"\1"',
    '"\n"' } do
    luaunit.assertEquals({ read_text(text) }, {}, text)
    luaunit.assertEquals({ read_text('["a",' .. text .. "]") }, {}, text)
  end
  luaunit.assertEquals(read_text('"\127"'), [['\x7f']])
end

return require "suites" { { "TestArguments", TestArguments } }
