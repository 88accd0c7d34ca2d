-- template.lua: the syntax of templates, and the places that their errors name.
local failure = require "failure"
local luaunit = require "luaunit"
local template = require "codec.template"

local tests = {}

local function render(text, model) return template.compile(text, "t.tmpl")(model or {}) end

-- Renders this, which must fail with these words.
local function fails(words, text)
  local message, code = failure(render, text)
  luaunit.assertEquals(code, 2)
  luaunit.assertStrContains(message, words)
end

function tests.test_lines_and_values()
  luaunit.assertEquals(render("% for i = 1, 2 do\nint a${i}; // ${i * 2}\n% end\nend"),
    "int a1; // 2\nint a2; // 4\nend")
end

function tests.test_text_stays_as_it_is()
  local text = 'a "quoted" \\n \\ %d $x {y} %\n  % indented\n\n#include <x>\r\n'
  luaunit.assertEquals(render(text), text)
end

function tests.test_two_percent_signs_begin_a_line_with_one()
  luaunit.assertEquals(render("%% 100 ${1}\n"), "% 100 1\n")
end

function tests.test_the_last_newline_is_the_templates()
  luaunit.assertEquals(render("a"), "a")
  luaunit.assertEquals(render("a\n"), "a\n")
  luaunit.assertEquals(render(""), "")
end

function tests.test_nil_names_template_and_line()
  luaunit.assertEquals((failure(render, "a\n% local x = 1\n${missing}\n")), "t.tmpl:3: ${missing} is nil")
  fails("t.tmpl:3: ", "a\n\n${missing.field}\n")
end

function tests.test_false_and_zero_are_values()
  luaunit.assertEquals(render("${a} ${b}", { a = false, b = 0 }), "false 0")
end

function tests.test_errors_of_lua_name_the_line()
  fails("t.tmpl:2: no", "a\n% error('no')\n")
  fails("t.tmpl:3:", "a\n% for i = 1, 2\nb\n")
  fails("t.tmpl:2:", "a\n${1 +}\n")
end

function tests.test_an_unclosed_value_is_an_error()
  luaunit.assertEquals((failure(render, "a\nb ${c\n")), "t.tmpl:2: ${ is not closed on its line")
end

function tests.test_a_rendering_leaves_nothing_to_the_next()
  local compiled = template.compile("% if first then seen = 1 end\n${seen or 'none'}\n", "t.tmpl")
  luaunit.assertEquals(compiled { first = true }, "1\n")
  luaunit.assertEquals(compiled { first = false }, "none\n")
end

function tests.test_a_template_reaches_no_files()
  fails("'io'", "% io.open('x')\n")
end

return require "suites" { { "template", tests } }
