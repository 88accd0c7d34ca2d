-- The rooms (generator/rooms.lua): every require, lazy load and #include is of a room that may be used, no
-- two modules use each other, and rooms, files and functions stay small. Folders of tests are rooms, too;
-- those of tests/unit have the names of the generator's, those of tests/bench the names of the bench's.
-- rooms_are_enforced.lua breaks each rule once.
--
--   gentables lua tests/style/rooms.lua SOURCES          prints each error
--   gentables lua tests/style/rooms.lua SOURCES write    writes "Where things are" of docs/development.md
local file = require "core.file"
local is_rendered = dofile(arg[0]:match("^(.*/)") .. "rendered.lua")

local sources, writes = arg[1] .. "/", arg[2] == "write"
local rooms = dofile(sources .. "generator/rooms.lua")
local MOST_MODULES, MOST_LINES, MOST_LINES_OF_FUNCTION = 15, 500, 60

-- Names that two rooms have, with the reason. Names in catalogues are those of their lists.
local SHARED_NAMES = {
  list = "the list of a catalogue", main = "of a program", csv = "Lua's side and C's",
  json = "Lua's side and C's",
  workers = "Lua's side and C's", backend = "the interface, and each backend's struct of functions",
  candidates = "of a backend", epilogue = "on CPUs and on GPUs",
}
-- Files that are still too long; a file that is short enough must leave this list.
local LONG_FILES = {
}

local wrong = 0

local function report(...)
  wrong = wrong + 1
  print(string.format(...))
end

local function files_below(folder, endings)
  local found = {}
  local names = assert(io.popen(("cd '%s' && find '%s' -type f ! -path '*/golden/*' ! -path '*/corpus/*' " ..
    "| LC_ALL=C sort"):format(sources, folder)))
  for path in names:lines() do
    if endings[path:match("%.(%a+)$")] then found[#found + 1] = path end
  end
  names:close()
  return found
end

-- ---- modules and their uses ------------------------------------------------------------------

local CODE = { lua = true, c = true, cpp = true, h = true }

-- The modules below a folder: { path without ending (Lua: with it) = { room, name, uses = { module = line } }
-- }, and the texts of their files.
local function read_modules(root)
  local modules, texts = {}, {}
  for _, path in ipairs(files_below(root, CODE)) do
    local below = path:sub(#root + 2)
    local id = below:find("%.lua$") and below or below:match("^(.*)%.")
    local room, name = ("/" .. below):match("^/?(.-)/?([^/]+)%.%a+$")
    modules[id] = modules[id] or { room = room, name = name, uses = {} }
    texts[#texts + 1] = { id = id, path = path, text = assert(file.read(sources .. path)) }
  end
  return modules, texts
end

-- The C modules that Lua requires as core.NAME.
local function core_modules(texts)
  local found = {}
  for _, of in ipairs(texts) do
    local name = of.text:match("\n[^\n]*int luaopen_core_([%w_]+)%(lua_State %*%w+%) {")
    if name and not of.path:find("%.lua$") then found["core." .. name] = of.id end
  end
  return found
end

local function each_used(of, found)
  if of.path:find("%.lua$") then
    for name in of.text:gmatch('require%s*%(?%s*"([%w_.]+)"') do found(name) end
    for name in of.text:gmatch('"base.lazy"%)?%s*%(?"([%w_.]+)"') do found(name) end
  else
    for name in of.text:gmatch('\n#include "([%w_./]+)"') do found(name) end
  end
end

local function read_uses(modules, texts, core)
  local count = 0
  for _, of in ipairs(texts) do
    local folder = modules[of.id].room == "" and "" or modules[of.id].room .. "/"
    each_used(of, function(name)
      local used = core[name] or (name:gsub("%.", "/") .. ".lua")
      local header = name:match("^(.*)%.%a+$")
      if not modules[used] and header then used = modules[folder .. header] and folder .. header or header end
      if modules[used] and used ~= of.id then modules[of.id].uses[used], count = of.path, count + 1 end
    end)
  end
  assert(count > 0, "no module uses another")
end

-- ---- the rules ----------------------------------------------------------------------------------

local function check_edges(root, modules, list)
  local place, may_use = {}, {}
  for i, room in ipairs(list) do
    place[room.name], may_use[room.name] = i, {}
    for _, used in ipairs(room.uses) do
      if not place[used] then
        report("%s/%s: names %s, which comes later in the list", root, room.name, used)
      end
      may_use[room.name][used] = true
    end
  end
  for _, module in pairs(modules) do
    if not place[module.room] then
      report("%s/%s: no room of rooms.lua", root, module.room)
      place[module.room], may_use[module.room] = 0, {}
    end
    for used, path in pairs(module.uses) do
      local room = modules[used].room
      if room ~= module.room and not may_use[module.room][room] then
        report("%s: uses %s, and the room %s may not use %s", path, used, module.room, room)
      end
    end
  end
end

local function check_circles(root, modules)
  local state = {}
  local function visit(id, way)
    if state[id] == "done" then return end
    way[#way + 1] = id
    if state[id] then return report("%s: a circle: %s", root, table.concat(way, " -> ")) end
    state[id] = "open"
    for used in pairs(modules[id].uses) do visit(used, table.move(way, 1, #way, 1, {})) end
    state[id] = "done"
  end
  for id in pairs(modules) do visit(id, {}) end
end

local function check_sizes(root, modules, list)
  local count, owner, catalogue = {}, {}, {}
  for _, room in ipairs(list) do catalogue[room.name] = room.catalogue end
  for _, module in pairs(modules) do
    local room, name = module.room, module.name
    count[room] = (count[room] or 0) + 1
    if not catalogue[room] and not SHARED_NAMES[name] then
      if owner[name] and owner[name] ~= room then
        report("%s: two rooms have a module %s: %s and %s", root, name, owner[name], room)
      end
      owner[name] = room
    end
  end
  for _, room in ipairs(list) do
    if not count[room.name] then report("%s/%s: a room without modules", root, room.name) end
    if not room.catalogue and (count[room.name] or 0) > MOST_MODULES then
      report("%s/%s: %d modules; maximum %d", root, room.name, count[room.name], MOST_MODULES)
    end
  end
end

-- A template gets a model, and requires only what writes it as text: rooms.templates lists the rooms of the
-- generator for each folder. `modules` and `core`: the generator's.
local function check_templates(modules, core)
  for _, path in ipairs(files_below("templates", { tmpl = true })) do
    local folder, may_use = path:match("^templates/([^/]*)/"), {}
    for _, room in ipairs(rooms.templates[folder] or {}) do may_use[room] = true end
    each_used({ path = path:gsub("tmpl$", "lua"), text = assert(file.read(sources .. path)) }, function(name)
      local used = core[name] or (name:gsub("%.", "/") .. ".lua")
      local room = modules[used] and modules[used].room
      if room and not may_use[room] then
        report("%s: uses %s, and templates/%s may not use %s", path, used, folder, room)
      end
    end)
  end
end

-- Folders of tests are small, too, except catalogues. Below MIRRORS a folder has the name of a room.
local TESTS = { lua = true, sh = true, c = true, cpp = true, h = true, py = true }
local TEST_CATALOGUES = { ["tests/perf"] = true }
local MIRRORS = { ["tests/unit"] = "generator", ["tests/bench"] = "bench" }

local function check_mirror(folder)
  local root, name = folder:match("^(tests/%w+)/([^/]*)")
  if not MIRRORS[root] then return end
  for _, room in ipairs(rooms[MIRRORS[root]]) do
    if room.name:match("^[^/]*") == name then return end
  end
  report("%s: %s/ has no room %s", folder, MIRRORS[root], name)
end

local function check_tests()
  local seen, count = {}, {}
  for _, path in ipairs(files_below("tests", TESTS)) do
    local module, folder = path:match("^((.*)/[^/]*)%.%a+$")
    if not seen[module] then seen[module], count[folder] = true, (count[folder] or 0) + 1 end
  end
  for folder, modules in pairs(count) do
    if modules > MOST_MODULES and not TEST_CATALOGUES[folder] then
      report("%s: %d modules; maximum %d", folder, modules, MOST_MODULES)
    end
    check_mirror(folder)
  end
end

-- Functions begin and end at the start of a line. In C the head of one ends with "{", maybe some lines later;
-- a line that ends otherwise is that of a prototype, or of a whole function.
local function check_functions(path, text)
  local begins, ends, opens = "^%a[%w_%s*:<>,&\"]*%(", "^}", "{$"
  if path:find("%.lua$") then begins, ends, opens = "^l?o?c?a?l?%s?function ", "^end", "" end
  local number, since, head, is_open = 0, nil, nil, false
  for line in text:gmatch("([^\n]*)\n") do
    number = number + 1
    if line:find(begins) then since, head, is_open = number, line, false end
    if since and not is_open then
      is_open = line:find(opens) ~= nil
      if line:find("[;}]$") then since = nil end
    end
    if since and line:find(ends) then
      if number - since + 1 > MOST_LINES_OF_FUNCTION then
        report("%s:%d: %d lines; maximum %d: %s", path, since, number - since + 1,
          MOST_LINES_OF_FUNCTION, head)
      end
      since = nil
    end
  end
end

local function check_files()
  local endings = { lua = true, c = true, cpp = true, h = true, sh = true, js = true, css = true, tmpl = true,
    py = true }
  for _, folder in ipairs { "generator", "bench", "templates", "tests" } do
    for _, path in ipairs(files_below(folder, endings)) do
      local text = assert(file.read(sources .. path))
      local _, lines = text:gsub("\n", "\n")
      if lines > MOST_LINES and not LONG_FILES[path] then
        report("%s: %d lines; maximum %d", path, lines, MOST_LINES)
      elseif lines <= MOST_LINES and LONG_FILES[path] then
        report("%s: is short enough; take it off LONG_FILES", path)
      end
      if CODE[path:match("%.(%a+)$")] then check_functions(path, text) end
    end
  end
end

-- ---- the page -----------------------------------------------------------------------------------

local PAGE = "docs/development.md"

local function render()
  local out = {}
  for _, root in ipairs { "generator", "bench" } do
    out[#out + 1] = ("\n| in `%s/` | what | uses |\n|---|---|---|\n"):format(root)
    for _, room in ipairs(rooms[root]) do
      out[#out + 1] = ("| %s | %s%s | %s |\n"):format(
        room.name == "" and "the folder itself" or "`" .. room.name .. "/`",
        room.purpose, room.catalogue and " (a catalogue)" or "", table.concat(room.uses, ", "))
    end
  end
  return table.concat(out) .. "\n"
end

local function check_page()
  if not is_rendered(sources .. PAGE, "rooms", render(), writes) then
    report("%s: is not what rooms.lua gives; gentables lua tests/style/rooms.lua . write", PAGE)
  end
end

for _, root in ipairs { "generator", "bench" } do
  local modules, texts = read_modules(root)
  local core = core_modules(texts)
  read_uses(modules, texts, core)
  check_edges(root, modules, rooms[root])
  check_circles(root, modules)
  check_sizes(root, modules, rooms[root])
  if root == "generator" then check_templates(modules, core) end
end
check_tests()
check_files()
check_page()
return wrong > 0 and 1 or 0
