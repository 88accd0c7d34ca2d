-- core.text: the shortest texts of numbers, and long texts of columns.
local core_text = require "core.text"
local luaunit = require "luaunit"

local tests = {}

function tests.test_the_shortest_text_reads_back()
  luaunit.assertEquals(core_text.shortest(3), "3")
  luaunit.assertEquals(core_text.shortest(-3.0), "-3.0")
  luaunit.assertEquals(core_text.shortest(0.1 + 0.2), "0.30000000000000004")
  luaunit.assertEquals(core_text.shortest(1e300), "1e+300")
  luaunit.assertNil(core_text.shortest(math.huge))
  luaunit.assertNil(core_text.shortest(0 / 0))
end

function tests.test_rows_have_values_between_pieces()
  local starts = { decimals = 4, 0, 1.5, -2.00005, 1e20 }
  local columns = { { "a", "", "c", "d" }, { 1, -2, 0.5, math.mininteger }, starts }
  luaunit.assertEquals(core_text.rows({ "<", "|", "|", ">" }, columns, ",\n"),
    ("<a|1|0>,\n<|-2|1.5000>,\n<c|0.5|%.4f>,\n<d|%d|%.4f>"):format(-2.00005, math.mininteger, 1e20))
  luaunit.assertEquals(core_text.rows({ "<", ">" }, { {} }, ","), "")
end

-- Longer than any estimate of the length.
function tests.test_rows_grow()
  local long, list = ("x"):rep(1000), {}
  for i = 1, 1000 do list[i] = long end
  luaunit.assertEquals(core_text.rows({ "", "" }, { list }, ""), long:rep(1000))
end

function tests.test_wrong_columns_are_errors()
  for words, arguments in pairs { ["another length"] = { { "", "", "" }, { { 1 }, { 1, 2 } }, "" },
    ["one piece more"] = { { "" }, { { 1 } }, "" }, ["no text or number"] = { { "", "" }, { { true } }, "" },
    ["no column"] = { { "" }, {}, "" } } do
    luaunit.assertErrorMsgContains(words, core_text.rows, table.unpack(arguments))
  end
  luaunit.assertErrorMsgContains("no text or number", core_text.rows, { "", "" }, { { 0 / 0 } }, "")
end

function tests.test_texts_are_joined()
  luaunit.assertEquals(core_text.concat { "a", "", "bc" }, "abc")
  luaunit.assertEquals(core_text.concat {}, "")
end

return require "suites" { { "texts_of_columns", tests } }
