-- gnuplot.lua: a picture is complete or missing, labels and file names are taken literally, and errors are
-- reported in one line.
local lu = require "luaunit"
local file = require "core.file"
local gnuplot = require "pages.gnuplot"
local process = require "core.process"
local system = require "core.system"

local SOON = 60 -- seconds, above any time that it needs
local SIGTERM = 15

local work = assert(os.getenv("WORK"))
os.execute(("rm -rf '%s'"):format(work))

local is_here = process.start({ "gnuplot", "--version" })
if not is_here then require "skip" "there is no gnuplot here" end
is_here:close(SOON)

local TestGnuplot = {}

local count, folder = 0, nil

function TestGnuplot.setUp()
  count = count + 1
  folder = ("%s/%d"):format(work, count)
  assert(file.make_folder(folder))
end

local function names()
  local list = assert(file.list(folder))
  table.sort(list)
  return list
end

local function script(title)
  return gnuplot.png(2, 1.5) .. "set title " .. gnuplot.quote(title) .. "\nplot x\n"
end

-- CRC-32 as in the PNG standard.
local function crc32(text)
  local crc = 0xffffffff
  for i = 1, #text do
    crc = crc ~ text:byte(i)
    for _ = 1, 8 do crc = crc & 1 == 1 and (crc >> 1) ~ 0xedb88320 or crc >> 1 end
  end
  return crc ~ 0xffffffff
end

-- The chunks of a PNG: a list of { type, data }; each CRC is checked.
local function chunks(png)
  lu.assertEquals(png:sub(1, 8), "\137PNG\r\n\26\n")
  local list, at = {}, 9
  while at <= #png do
    local size = (">I4"):unpack(png, at)
    local body = png:sub(at + 4, at + 7 + size)
    lu.assertEquals((">I4"):unpack(png, at + 8 + size), crc32(body))
    list[#list + 1] = { body:sub(1, 4), body:sub(5) }
    at = at + 12 + size
  end
  return list
end

-- Runs `code`, which has `gnuplot` and `path`, as a process of its own: for another PATH, or a signal.
local function other_process(code, environment)
  local program = folder .. "/program.lua"
  assert(file.write(program, "local gnuplot, path = require 'pages.gnuplot', arg[1]\n" .. code))
  return assert(process.start({ system.program(), "lua", program, folder .. "/a.png" }, environment))
end

-- Puts a stand-in for gnuplot into a folder of its own; returns a PATH with it.
local function stand_in(text)
  local bin = folder .. "/bin"
  assert(file.make_folder(bin))
  assert(file.write(bin .. "/gnuplot", "#!/bin/sh\n" .. text))
  os.execute(("chmod +x '%s/gnuplot'"):format(bin))
  return { "PATH=" .. bin .. ":" .. os.getenv("PATH") }
end

-- The first line of such a process; afterwards only these names are in the folder.
local function says(child, ...)
  local line = child:read_line(SOON)
  child:close(SOON)
  lu.assertEquals(names(), { ... })
  return line
end

local draw_and_print = [[
print(gnuplot.draw(gnuplot.png(1, 1) .. "plot x\n", path))]]

function TestGnuplot.test_a_picture_has_the_requested_size_and_density()
  lu.assertEquals({ gnuplot.draw(script("t"), folder .. "/a.png") }, { true })
  local list = chunks(assert(file.read(folder .. "/a.png")))
  lu.assertEquals(list[1][1], "IHDR")
  lu.assertEquals({ (">I4I4"):unpack(list[1][2]) }, { 600, 450, 9 }) -- 2 and 1.5 inches, 300 dpi
  lu.assertEquals(list[2][1], "pHYs")
  lu.assertEquals({ (">I4I4B"):unpack(list[2][2]) }, { 11811, 11811, 1, 10 }) -- 300 / 0.0254 per metre
  lu.assertEquals(list[#list][1], "IEND")
  lu.assertEquals(names(), { "a.png" })
end

function TestGnuplot.test_a_failing_script_leaves_the_old_picture()
  assert(file.write(folder .. "/a.png", "old"))
  local done, message = gnuplot.draw(gnuplot.png(1, 1) .. "plot no_such_function(x)\n", folder .. "/a.png")
  lu.assertNil(done)
  lu.assertStrContains(message, folder .. "/a.png: gnuplot failed (exit code 1)")
  lu.assertStrContains(message, "undefined function: no_such_function")
  lu.assertNotStrContains(message, "\n")
  lu.assertEquals(file.read(folder .. "/a.png"), "old")
  lu.assertEquals(names(), { "a.png" })
end

function TestGnuplot.test_nothing_drawn_is_no_picture()
  local done, message = gnuplot.draw(gnuplot.png(1, 1), folder .. "/a.png")
  lu.assertNil(done)
  lu.assertStrContains(message, "no whole picture")
  lu.assertEquals(names(), {})
end

function TestGnuplot.test_a_missing_folder_is_reported()
  local done, message = gnuplot.draw(script("t"), folder .. "/none/a.png")
  lu.assertNil(done)
  lu.assertEquals(message, folder .. "/none/a.png: cannot be written: No such file or directory")
end

function TestGnuplot.test_names_mean_only_themselves()
  for _, name in ipairs { "a b.png", "'.png", '".png', "`touch ran`.png", "$(x)%s@x\\n.png", "µ.png" } do
    lu.assertEquals({ gnuplot.draw(script("t"), folder .. "/" .. name) }, { true })
    lu.assertEquals(names(), { name })
    os.remove(folder .. "/" .. name)
  end
end

function TestGnuplot.test_a_name_that_looks_like_a_pipe_is_a_name()
  local code = "assert(gnuplot.draw(gnuplot.png(1, 1) .. 'plot x\\n', '|touch ran'))"
  local program = folder .. "/program.lua"
  assert(file.write(program, "local gnuplot = require 'pages.gnuplot'\n" .. code))
  local words = "cd '%s' && exec '%s' lua program.lua"
  local child = assert(process.start { "sh", "-c", words:format(folder, system.program()) })
  lu.assertEquals({ child:close(SOON) }, { "exit code 0", true })
  lu.assertEquals(names(), { "program.lua", "|touch ran" })
end

function TestGnuplot.test_labels_run_nothing()
  local ran = folder .. "/ran"
  for _, title in ipairs { ("`touch %s`"):format(ran), ('"; system("touch %s"); "'):format(ran),
    ("\\`touch %s\\`"):format(ran), ("'\nsystem('touch %s')\n'"):format(ran), "@x %s % {/Bold a}_b^c \\" } do
    lu.assertEquals({ gnuplot.draw(script(title), folder .. "/a.png") }, { true })
    lu.assertEquals(names(), { "a.png" })
  end
end

function TestGnuplot.test_without_gnuplot_there_is_one_line()
  lu.assertStrMatches(says(other_process(draw_and_print, { "PATH=/nonexistent" }), "program.lua"),
    "nil\t.*/a%.png: gnuplot: No such file or directory; .*gnuplot%-nox.*")
end

function TestGnuplot.test_half_a_picture_is_none()
  local child = other_process(draw_and_print, stand_in [[
output=$(sed -n '/^exit/q; s/^set output "\(.*\)"/\1/p' | sed 's/\\137/_/g')
printf '\211PNG\r\n\032\n and no end' >"$output"]])
  lu.assertStrContains(says(child, "bin", "program.lua"), "no whole picture")
end

function TestGnuplot.test_one_that_hangs_is_ended()
  local child = other_process("gnuplot.deadline_s = 0.1\n" .. draw_and_print, stand_in "sleep 1000")
  lu.assertStrContains(says(child, "bin", "program.lua"), "gnuplot did not end within 0.1 s")
end

function TestGnuplot.test_a_signal_ends_the_wait()
  local child = other_process([[
local ok, failure = pcall(gnuplot.draw, gnuplot.png(1, 1) .. "plot x\n", path)
print(ok, failure, failure.code)]], stand_in "read -r line; kill -TERM $PPID; sleep 1000")
  lu.assertEquals(says(child, "bin", "program.lua"),
    ("false\tinterrupted by SIGTERM\t%d"):format(128 + SIGTERM))
end

return require "suites" { { "TestGnuplot", TestGnuplot } }
