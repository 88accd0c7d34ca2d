-- rooms.lua finds each fault that it looks for: a small tree of sources, in which each rule is broken once.
local file = require "core.file"
local luaunit = require "luaunit"

local rooms_lua = os.getenv "SOURCE" .. "/tests/style/rooms.lua"
local tree = os.getenv "WORK"
local tests = {}

local LIST = [[
return {
  generator = {
    { name = "", purpose = "this list", uses = {} },
    { name = "base", purpose = "the lowest", uses = {} },
    { name = "rows", purpose = "above it", uses = { "base" } },
  },
  bench = {
    { name = "ranks", purpose = "the lowest", uses = {} },
    { name = "host", purpose = "above it", uses = { "ranks" } },
  },
  templates = { tables = { "base" } },
}
]]
local SOUND = {
  ["generator/rooms.lua"] = LIST,
  ["generator/base/fail.lua"] = "return {}\n",
  ["generator/base/lazy.lua"] = "return function() end\n",
  ["generator/rows/spec.lua"] = 'local fail = require "base.fail"\nreturn fail\n',
  ["bench/ranks/group.c"] = '\n#include "watch.h"\n',
  ["bench/ranks/watch.h"] = "int watch;\n",
  ["bench/host/pass.h"] = '\n#include "ranks/watch.h"\n',
  ["templates/tables/table.tmpl"] = '% local fail = require "base.fail"\ntable\n',
  ["tests/unit/rows/spec.lua"] = "return 0\n",
  ["tests/bench/host/pass.c"] = "int pass;\n",
  ["docs/development.md"] = "<!-- rooms: rendered from generator/rooms.lua -->\n<!-- end of rooms -->\n",
}

-- The output of rooms.lua for the sound tree with these files in place of its own, and whether it ends with
-- 0.
local function check(files, option)
  for path, text in pairs(files) do
    path = tree .. "/" .. path
    assert(os.execute(("mkdir -p '%s'"):format(path:match("^(.*)/"))))
    assert(file.write(path, text))
  end
  local pipe = assert(io.popen(("'%s' lua '%s' '%s' %s 2>&1"):format(os.getenv "GENTABLES", rooms_lua, tree,
    option or "")))
  local output = pipe:read "a"
  return output, pipe:close()
end

-- Makes the sound tree again, with these changes; expects one line with this text. `option`: "write".
local function fails(files, expected, option)
  tests.setUp()
  local output, well = check(files, option)
  luaunit.assertNil(well, expected)
  luaunit.assertStrContains(output, expected)
  luaunit.assertEquals(select(2, output:gsub("\n", "")), 1, output)
end

local function many(folder)
  local files = {}
  for i = 1, 16 do files[("%s/module%d.lua"):format(folder, i)] = "return {}\n" end
  return files
end

function tests.setUp()
  assert(os.execute(("rm -rf '%s' && mkdir -p '%s'"):format(tree, tree)))
  check(SOUND, "write")
end

function tests.test_a_sound_tree_passes()
  local output, well = check {}
  luaunit.assertEquals({ output, well }, { "", true })
end

function tests.test_a_room_uses_only_rooms_below_it()
  fails({ ["generator/base/fail.lua"] = 'local spec = require "rows.spec"\nreturn spec\n',
    ["generator/rows/spec.lua"] = "return {}\n",
    ["generator/rows/read.lua"] = 'local lazy = require "base.lazy"\nreturn lazy\n' },
    "generator/base/fail.lua: uses rows/spec.lua, and the room base may not use rows")
  fails({ ["generator/base/fail.lua"] = 'return require "base.lazy" "rows.read"\n',
    ["generator/rows/read.lua"] = "return {}\n" },
    "generator/base/fail.lua: uses rows/read.lua, and the room base may not use rows")
  fails({ ["templates/tables/table.tmpl"] = '% local spec = require "rows.spec"\n' },
    "templates/tables/table.tmpl: uses rows/spec.lua, and templates/tables may not use rows")
  fails({ ["bench/calls/cell.c"] = "int cell;\n" }, "bench/calls: no room of rooms.lua")
  fails({ ["bench/ranks/watch.h"] = '\n#include "host/pass.h"\n', ["bench/host/pass.h"] = "int pass;\n" },
    "bench/ranks/watch.h: uses host/pass, and the room ranks may not use host")
end

function tests.test_modules_do_not_use_each_other()
  fails({ ["bench/ranks/watch.h"] = '\n#include "group.h"\n', ["bench/ranks/group.h"] = "int group;\n" },
    "bench: a circle: ")
end

function tests.test_rooms_files_and_functions_are_small()
  fails(many "generator/rows", "generator/rows: 17 modules; maximum 15")
  fails(many "tests/unit/rows", "tests/unit/rows: 17 modules; maximum 15")
  fails({ ["templates/tables/table.tmpl"] = ("line\n"):rep(501) },
    "templates/tables/table.tmpl: 501 lines; maximum 500")
  fails({ ["tests/unit/rows/spec.lua"] = ("line\n"):rep(501) }, "tests/unit/rows/spec.lua: 501 lines")
  fails({ ["generator/rows/spec.lua"] = 'require "base.fail"\nlocal function long()\n' .. ("\n"):rep(59) ..
    "end\n" }, "generator/rows/spec.lua:2: 61 lines; maximum 60")
  fails({ ["bench/ranks/group.c"] = '\n#include "watch.h"\nint run(void) {\n' .. ("\n"):rep(59) .. "}\n" },
    "bench/ranks/group.c:3: 61 lines; maximum 60")
  fails({ ["bench/ranks/group.c"] = '\n#include "watch.h"\nint run(int a);\nstatic struct watch *run(\n' ..
    "    int a) {\n" .. ("\n"):rep(58) .. "}\n" },
    "bench/ranks/group.c:4: 61 lines; maximum 60: static struct watch *run(")
end

function tests.test_names_are_of_one_room()
  fails({ ["generator/rows/fail.lua"] = "return {}\n" }, "generator: two rooms have a module fail: ")
  fails({ ["tests/unit/tables/read.lua"] = "return 0\n" }, "tests/unit/tables: generator/ has no room tables")
  fails({ ["tests/bench/rows/read.c"] = "int read;\n" }, "tests/bench/rows: bench/ has no room rows")
end

function tests.test_the_list_is_of_rooms_in_their_order()
  local wrong = LIST:gsub('the lowest", uses = {}', 'the lowest", uses = { "rows" }', 1)
  fails({ ["generator/rooms.lua"] = wrong },
    "generator/base: names rows, which comes later in the list", "write")
  wrong = LIST:gsub("bench = {", '%0 { name = "empty", purpose = "", uses = {} },')
  fails({ ["generator/rooms.lua"] = wrong },
    "bench/empty: a room without modules", "write")
end

function tests.test_the_page_is_rendered_from_the_list()
  fails({ ["docs/development.md"] = SOUND["docs/development.md"] },
    "docs/development.md: is not what rooms.lua")
end

return require "suites" { { "rooms", tests } }
