-- Selects the tests that concern some files, for `sh cmake/dev.sh check`. Prints their names, the most
-- closely related first, as many as fit into BUDGET_S seconds; and on stderr those that are left to CI.
--
--   cd SOURCES && ctest --test-dir build --show-only=json-v1 >tests.json
--   gentables lua cmake/check.lua tests.json COSTS FILE...
--
-- A test concerns a file if the file is the test itself, or if the test reaches it by uses: a script requires
-- a module or runs a verb, a module requires others, and a module in C consists of sources that include
-- others. For other files AREAS lists the tests. COSTS is the file CTestCostData.txt of the build tree, with
-- the seconds of earlier runs.
local file = require "core.file"
local json = require "codec.json"
local ordering = require "base.ordering"
local verbs = require "verbs"

local BUDGET_S = 30      -- wall time of the tests, two at a time
local UNKNOWN_COST_S = 3 -- of a test that has not run yet

-- A beginning of a file's path, and those of the paths of its tests; the first matching row counts. Rows
-- below generator/ are for modules that no test reaches.
local AREAS = {
  { "bench/replay/", "tests/bench/replay/", "tests/unit/replay/" },
  { "bench/workload/", "tests/bench/workload/", "tests/unit/workload/" },
  { "bench/cuda/", "tests/bench/cuda/" },
  { "bench/plugins/", "tests/unit/tune/", "tests/bench/trial/" },
  { "bench/", "tests/bench/elements/", "tests/bench/calls/", "tests/bench/protocol/", "tests/bench/ranks/",
    "tests/bench/start/", "tests/bench/host/", "tests/unit/tune/", "tests/bench/trial/" },
  { "workloads/", "tests/unit/workload/" },
  { "templates/bench/", "tests/bench/" }, { "templates/plots/", "tests/unit/report/" },
  { "templates/reports/", "tests/unit/pages/", "tests/unit/report/" },
  { "templates/tables/", "tests/unit/formats/", "tests/unit/frameworks/", "tests/unit/tuners/",
    "tests/readers/" },
  { "templates/tune/", "tests/unit/tune/" },
  { "templates/", "tests/unit/formats/" }, { "python/", "tests/unit/tune/", "tests/unit/formats/" },
  { "cmake/dev.sh", "tests/style/dev_sh" }, { "cmake/check.lua", "tests/style/dev_sh" },
  { "cmake/", "tests/system/package/" }, { "tables/", "tests/style/committed" },
  { "docs/", "tests/style/pages" }, { "README.md", "tests/style/pages" },
  { "tests/golden/sm90", "tests/unit/formats/", "tests/system/package/" },
  { "tests/golden/trace", "tests/unit/trace/" },
  { "tests/stand_ins/bench.c", "tests/unit/sweep/" },
  { "tests/stand_ins/plugins/", "tests/unit/tune/", "tests/bench/trial/", "tests/bench/cuda/plugins/" },
  { "tests/stand_ins/", "tests/bench/cuda/", "tests/bench/workload/gpu/", "tests/bench/replay/gpu" },
  { "tests/system/consumer", "tests/system/package/" }, { "generator/trace/", "tests/unit/trace/" },
  { "generator/metric/", "tests/unit/metric/" }, { "generator/profile/", "tests/unit/profile/" },
  { "generator/serving/", "tests/unit/metric/" }, { "generator/workload/", "tests/unit/workload/" },
  { "generator/replay/", "tests/unit/replay/" }, { "generator/", "tests/unit/", "tests/readers/" },
}

-- ---- uses ---------------------------------------------------------------------------------------

local function files_below(folder, ...)
  local found, suffixes = {}, { ... }
  local names = assert(io.popen(("find '%s' -type f ! -path '*/golden/*' | LC_ALL=C sort"):format(folder)))
  for path in names:lines() do
    for _, suffix in ipairs(suffixes) do
      if path:sub(-#suffix) == suffix then found[#found + 1] = path end
    end
  end
  names:close()
  return found
end

-- C sources with the same first word in their names are one module: rows_line.c, rows_lua.c.
local function c_node(path)
  local folder, stem = path:gsub("[^/]+/%.%./", ""):match("^(.*/)([^/]*)%.%w+$")
  return folder .. stem:match("^[^_]*")
end

local function node_of(path)
  local module = path:match("^generator/(.*)%.lua$")
  if module then return (module:gsub("/", ".")) end
  if path:find("%.[ch]$") or path:find("%.cpp$") or path:find("%.cu$") then return c_node(path) end
  return path
end

local uses = {} -- node -> set of nodes

local function add_use(user, used)
  uses[user] = uses[user] or {}
  uses[user][used] = true
end

-- Calls `found` for each module that a Lua text requires; `modules` are all modules.
local function each_required(text, modules, found)
  text = text:gsub("%-%-[^\n]*", "") -- comments may have examples
  for name in text:gmatch('require%s*%(?%s*"([%w_.]+)"') do found(name) end
  for name in text:gmatch('require "base.lazy" "([%w_.]+)"') do found(name) end
  for prefix in text:gmatch('require%s*%(%s*"([%w_.]+%.)"%s*%.%.') do -- one of several, by name
    for name in pairs(modules) do
      if name:sub(1, #prefix) == prefix then found(name) end
    end
  end
end

local function read_generator()
  local modules, texts = {}, {}
  for _, path in ipairs(files_below("generator", ".lua")) do
    local module = node_of(path)
    modules[module], texts[module] = true, assert(file.read(path))
  end
  for module, text in pairs(texts) do
    local is_dispatch = module == "verbs" or module == "base.commands" -- which can load every verb
    each_required(text, is_dispatch and {} or modules, function(name) add_use(module, name) end)
  end
  return modules
end

-- The functions that a text declares or defines at the start of a line, without static ones.
local function functions_of(text)
  local names = {}
  for line in text:gmatch("[^\n]+") do
    local name = not line:find("^static") and line:match("^%a[%w_:<>,%s*&]-([%w_]+)%(")
    if name and not name:find("^luaopen_") then names[name] = true end
  end
  return names
end

-- Included paths are relative to the file's folder, or to generator/ or bench/. Using a header means using
-- the sources in its folder that define its functions.
local function read_c(root)
  local definers, headers = {}, {} -- of functions, by folder and name; functions of headers
  for _, path in ipairs(files_below(root, ".c", ".h", ".cpp", ".cu")) do
    local text, node = assert(file.read(path)), c_node(path)
    for name in text:gmatch('#include "([%w_./]+)"') do
      for _, folder in ipairs { path:match("^(.*/)"), root .. "/" } do
        if file.exists(folder .. name) then add_use(node, c_node(folder .. name)) end
      end
    end
    if path:find("%.h$") then
      headers[path] = functions_of(text)
    else
      for module in text:gmatch("luaopen_core_([%w_]+)%(lua_State") do add_use("core." .. module, node) end
      for name in pairs(functions_of(text)) do
        local key = node:match("^.*/") .. name
        definers[key] = definers[key] or {}
        table.insert(definers[key], node)
      end
    end
  end
  for path, names in pairs(headers) do
    local node = c_node(path)
    for name in pairs(names) do
      for _, source in ipairs(definers[node:match("^.*/") .. name] or {}) do add_use(node, source) end
    end
  end
end

-- ---- tests --------------------------------------------------------------------------------------

-- The files of a test: its script with the lib that it sources, or the source of its program.
local function files_of(test)
  local found = {}
  local words = table.concat(test.command or {}, "\n")
  for path in words:gmatch("/(tests/[^\n]*%.%l+)") do
    if file.exists(path) then
      found[#found + 1] = path
      local lib = path:match("^(.*/)") .. "lib" .. path:match("%.%l+$")
      if file.exists(lib) then found[#found + 1] = lib end
    end
  end
  local program = words:match("/test_([%w_]+)")
  if program and #found == 0 then
    for _, path in ipairs(files_below("tests", ".c", ".cpp")) do
      local folders, stem = path:match("^tests(/.*/)([%w_]+)%.%w+$")
      local area = stem and program:match("^(.*)_" .. stem .. "$")
      if program == stem or area and folders:find("/" .. area .. "/", 1, true) then
        found[#found + 1] = path
      end
    end
  end
  return found
end

local verb_names = {}
for _, verb in ipairs(verbs.list) do verb_names[verb.name] = true end

-- The nodes that a test's files use directly: modules, verbs, sources.
local function direct_uses(test, modules)
  local nodes = {}
  for _, path in ipairs(test.files) do
    nodes[path] = true
    local text = assert(file.read(path))
    each_required(text, modules, function(name) nodes[name] = true end)
    for _, start in ipairs { '[Gg][Ee][Nn][Tt][Aa][Bb][Ll][Ee][Ss]}?"?%s*,?%s*"?', "succeeds " } do
      for verb in text:gmatch(start .. "(%l+)") do
        if verb_names[verb] then nodes["verbs." .. verb] = true end
      end
    end
    for name in text:gmatch('#include "([%w_./]+)"') do
      for _, root in ipairs { "bench/", "generator/" } do
        if file.exists(root .. name) then nodes[c_node(root .. name)] = true end
      end
    end
  end
  return nodes
end

-- { node = steps from the test }, and the number of nodes.
local function reached(nodes)
  local distance, queue = {}, {}
  for node in pairs(nodes) do distance[node], queue[#queue + 1] = 0, node end
  for _, node in ipairs(queue) do
    for used in pairs(uses[node] or {}) do
      if not distance[used] then distance[used], queue[#queue + 1] = distance[node] + 1, used end
    end
  end
  return distance, #queue
end

local function read_costs(path)
  local costs = {}
  for line in (file.exists(path) and assert(file.read(path)) or ""):gmatch("[^\n]+") do
    local name, seconds = line:match("^(%S+) %d+ ([%d.]+)$")
    if name then costs[name] = tonumber(seconds) end
  end
  return costs
end

local function property(test, name)
  for _, row in ipairs(test.properties or {}) do
    if row.name == name then return row.value end
  end
end

-- A list of { name, files, distance, reach, cost_s, alone }; `distance`: node -> steps, of `reach` nodes.
local function read_tests(path, costs, modules)
  local tests = {}
  for _, test in ipairs(json.decode(assert(file.read(path))).tests) do
    local entry = { name = test.name, files = files_of(test), cost_s = costs[test.name] or UNKNOWN_COST_S,
      alone = property(test, "RUN_SERIAL") }
    entry.distance, entry.reach = reached(direct_uses(entry, modules))
    tests[#tests + 1] = entry
  end
  return tests
end

-- ---- the tests that concern the files -----------------------------------------------------------

local NOT_CONCERNED = math.huge
local IN_AREA = 5 -- steps to the tests of AREAS

-- The number of uses between a test and a file: 0 for the test itself.
local function steps_to(test, path)
  return test.distance[path] or test.distance[node_of(path)] or NOT_CONCERNED
end

-- Whether one of the test's files mentions a file by its name.
local function mentions(test, path)
  local stem = (path:match("([^/]*)%.%w+$") or path):lower()
  for _, name in ipairs(test.files) do
    if assert(file.read(name)):lower():find(stem, 1, true) then return true end
  end
  return false
end

-- The beginnings of the paths of a file's tests, by its folder.
local function areas_of(path)
  for _, row in ipairs(AREAS) do
    if path:sub(1, #row[1]) == row[1] then return { table.unpack(row, 2) } end
  end
  return { path:match("^tests/[%w_/]+/") }
end

local function is_in(test, areas)
  for _, area in ipairs(areas) do
    for _, path in ipairs(test.files) do
      if path:sub(1, #area) == area then return true end
    end
  end
  return false
end

-- Sets `far` of each test to its distance from this file, if that is smaller.
local function note_distances(tests, path)
  local is_reached = false
  for _, test in ipairs(tests) do
    local steps = steps_to(test, path)
    test.far = math.min(test.far, steps)
    is_reached = is_reached or steps < NOT_CONCERNED
  end
  if is_reached and path:find("^generator/") then return end
  local areas = areas_of(path)
  for _, test in ipairs(tests) do
    if is_in(test, areas) then test.far = math.min(test.far, mentions(test, path) and 1 or IN_AREA) end
  end
end

-- The tests that concern these files, the closest first; of equally close ones those that reach fewer nodes.
local function concerned(tests, paths)
  local found = {}
  for _, test in ipairs(tests) do test.far = NOT_CONCERNED end
  for _, path in ipairs(paths) do note_distances(tests, path) end
  for _, test in ipairs(tests) do
    if test.far < NOT_CONCERNED then found[#found + 1] = test end
  end
  return ordering.sort(found, ordering.by("far", "reach", "name"))
end

local modules = read_generator()
read_c("generator")
read_c("bench")
local spent_s, chosen, left = 0, 0, {}
for _, test in ipairs(concerned(read_tests(arg[1], read_costs(arg[2]), modules),
  { table.unpack(arg, 3) })) do
  local takes_s = test.alone and test.cost_s or test.cost_s / 2
  if spent_s + takes_s <= BUDGET_S or chosen == 0 then
    spent_s, chosen = spent_s + takes_s, chosen + 1
    print(test.name)
  else
    left[#left + 1] = test.name
  end
end
if #left > 0 then
  io.stderr:write(("left to CI, besides all other tests: %s\n"):format(table.concat(left, " ")))
end
