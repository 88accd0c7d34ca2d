-- Messages of failures are one line of a sensible length, whatever the values in them.
local fail = require "base.fail"
local failure = require "failure"
local lu = require "luaunit"
local progress = require "system.progress"

local TestMessages = {}

function TestMessages.test_a_long_value_keeps_its_beginning_and_its_end()
  local value = "begin" .. ("x"):rep(1000000) .. "end"
  local message = failure(fail.input, "%s:%d: %s is unknown; valid: a, b", "file", 7, value)
  lu.assertStrMatches(message, "file:7: beginx+ %[%.%.%.%] x+end is unknown; valid: a, b")
  lu.assertTrue(#message < 1100)
end

function TestMessages.test_many_long_values_and_a_long_text_are_cut()
  local value = ("x"):rep(5000)
  lu.assertTrue(#(failure(fail.input, ("%s "):rep(9), value, value, value, value, value, value, value, value,
    value)) < 4100)
  lu.assertTrue(#(failure(fail.work, value)) < 4100)
  lu.assertEquals((failure(fail.work, "short %")), "short %")
end

-- Such as the stderr of a bench in one line.
function TestMessages.test_lines_beside_a_bar_are_cut()
  local stream <close> = assert(io.tmpfile())
  progress.new(1, stream):print("begin" .. ("x"):rep(5000) .. "end")
  stream:seek("set", 0)
  lu.assertStrMatches(stream:read("a"), "beginx+ %[%.%.%.%] x+end\n")
  lu.assertTrue(stream:seek() < 4100)
end

function TestMessages.test_no_message_controls_a_terminal()
  lu.assertEquals((failure(fail.input, "%s", "a\27[31m\nb\127")), "a?[31m?b?")
  lu.assertEquals(fail.line("a\27[31m\0\tb"), "gentables: a?[31m??b\n")
  lu.assertEquals(fail.line("a\xFF\xE2\x82 b"), "gentables: a\u{FFFD}\u{FFFD}\u{FFFD} b\n")
end

function TestMessages.test_notes_are_short_and_counted()
  local stream, before, stderr = assert(io.tmpfile()), fail.notes(), io.stderr
  io.stderr = stream -- luacheck: ignore 122
  fail.note("%s: %d", ("x"):rep(5000), 7)
  fail.note("100 %\7")
  io.stderr = stderr -- luacheck: ignore 122
  stream:seek("set", 0)
  lu.assertStrMatches(stream:read("a"), "gentables: x+ %[%.%.%.%] x+: 7\ngentables: 100 %%%?\n")
  lu.assertEquals(fail.notes(), before + 2)
  stream:close()
end

function TestMessages.test_characters_stay_whole()
  for shift = 0, 3 do
    local message = failure(fail.input, "%s", ("x"):rep(shift) .. ("\u{1F600}"):rep(1000))
    lu.assertIsNumber(utf8.len(message), shift)
  end
end

function TestMessages.test_a_text_that_is_cut_has_no_part_of_a_character()
  lu.assertEquals(fail.cut("123456789", 9), "123456789")
  lu.assertEquals(fail.cut("123456789", 8), "12345...")
  lu.assertEquals(fail.cut("\u{E9}\u{E9}\u{E9}\u{E9}", 7), "\u{E9}\u{E9}...")
  for most = 3, 6 do lu.assertEquals(fail.cut("\u{1F600}\u{1F600}", most), "...") end
  lu.assertEquals(fail.cut("\u{1F600}\u{1F600}", 7), "\u{1F600}...")
end

return require "suites" { { "TestMessages", TestMessages } }
