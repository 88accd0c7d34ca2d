-- A file and a row add a thing, as in "How to add something" of docs/development.md: each example adds its
-- file and its row to a copy of the program's Lua and templates; then the program can do it, and its help
-- has the name. Compiled things have no example here.
local file = require "core.file"
local luaunit = require "luaunit"

local source, work, program = os.getenv "SOURCE", os.getenv "WORK", os.getenv "GENTABLES"
local home = work .. "/home"
local trace = source .. "/tests/golden/trace/h100_bert/h100_bert.json.gz"
local rows = source .. "/tests/golden/sm90"

-- thing: of the table in docs/development.md; file, list: below the sources; opening: the line before the
-- added `row`; run: a command that uses it; prints: the pattern of its output; writes: a file and a text in
-- it; help: a command that prints the name.
local examples = {
  { thing = "an output format", file = "templates/tables/added.tsv.tmpl", text = [[
% for _, world in ipairs(worlds) do
${world.tp}	${table.concat(world.num_tokens, ",")}
% end
]],
    list = "generator/formats/list.lua", opening = "formats.list = {",
    row = [[{ name = "added", file = "added.tsv", template = "tables/added.tsv.tmpl", reader = "scripts" },]],
    run = "generate --data-dir %s --arch sm90 --out OUT --formats added", of = rows,
    writes = { "added.tsv", "2\t1,16,256\n" }, help = "generate --help" },
  { thing = "a reader of a foreign file", file = "generator/readers/added_log.lua", text = [[
return function(source)
  local result = { rows = {}, no_time = {}, facts = {} }
  for line, text in source:lines() do
    local words = source.words(text)
    if text:find("^%d") then
      local num_tokens, hidden_size = source:shape(line, source:whole(line, "bytes", words[1]) // 4)
      table.insert(result.rows, source.record { line = line, world_size = 2, dtype = "float32",
        size = tonumber(words[1]), num_tokens = num_tokens, hidden_size = hidden_size, strategy = "MPI",
        time_us = source:positive(line, "time", words[2]) })
    end
  end
  return result
end
]],
    list = "generator/reading/list.lua", opening = "readers.list = {",
    row = [[{ name = "added-log", file = "added_log", gives = "rows", help = "plain logs",
      is = function(head) return head:find("^# plain log") ~= nil end },]],
    run = "import %s --arch host --out OUT", of = work .. "/plain.log", input = "# plain log\n1024 5.5\n",
    writes = { "benchmark.tp2.host.csv", "2,float32,1024,1,256,MPI,NONE,allreduce,5.5" },
    help = "import --help" },
  { thing = "a metric", file = "generator/metric/added_metric.lua", text = [[
local per_rank = require "profile.per_rank"

return per_rank.metric { value = function(rank)
  local longest = 0
  for i, start in ipairs(rank.kernels.start) do longest = math.max(longest, rank.kernels.stop[i] - start) end
  return longest / 1e6
end }
]],
    list = "generator/metric/list.lua", opening = "list.metrics = {",
    row = [[activity("added_metric", "ms", "less", "duration of the longest kernel"),]],
    run = "metric added_metric --trace %s", of = trace, prints = "0%.%d+\n", help = "metric --list" },
  { thing = "a plot of rows", file = "generator/plots/added.lua", text = [[
local sizes = require "pictures.time_over_size"

return { model = function(slice)
  return sizes.model(slice, { title = "Algorithm bandwidth", better = math.max,
    y = { label = "algbw (GB/s)", ticks = require("pages.geometry").log_ticks },
    value = function(row, time_us) return row.size_bytes / time_us * 1e-3 end })
end }
]],
    list = "generator/pictures/list.lua", opening = "local kinds = {",
    row = [[{ name = "added", help = "message size / time" },]],
    run = "plot added %s --fusion NONE --out OUT/added.svg", of = rows .. "/benchmark.tp2.sm90.csv",
    writes = { "added.svg", "Algorithm bandwidth" }, needs_gnuplot = true, help = "plot --help" },
  { thing = "a sheet of a trace report", file = "generator/trace/sheets/added_streams.lua", text = [[
return { make = function(rank)
  local sheet = { name = "added_streams", columns = { "stream", "kernel" }, rows = {} }
  for i, row in ipairs(rank.analysis:kernel_rows()) do sheet.rows[i] = { row.stream, row.kernel } end
  return { sheet }
end }
]],
    list = "generator/trace/reports/list.lua", opening = "list.of_rank = {",
    row = [[{ file = "added_streams", keys = { added_streams = { "stream", "kernel" } } },]],
    run = "trace report %s --csv --out OUT", of = trace,
    writes = { "h100_bert_csvs/added_streams.csv", "stream,kernel\n7," } },
  { thing = "a sheet of a trace report", file = "generator/trace/batch_sheets/added_kernels.lua", text = [[
return {
  field = "first",
  collect = function(rank) return rank.analysis:gpu_rows(1, 1)[1].name end,
  make = function(ranks)
    return { { name = "added_kernels", columns = { "name" }, rows = { { ranks[1].first } } } }
  end,
}
]],
    list = "generator/trace/reports/list.lua", opening = "list.over_ranks = {",
    row = [[{ file = "added_kernels" },]],
    run = "trace report -b %s -f rank_ -e gz --csv -o OUT/all.xlsx", of = work .. "/runs",
    writes = { "all_csvs/added_kernels.csv", "name\n\"void at::native::" } },
  { thing = "a verb", file = "generator/verbs/added.lua", text = [[
return { summary = "Greets.",
  options = { { name = "name", value = "NAME", required = true, help = "a name" } },
  run = function(args) print("hello " .. args.name) end }
]],
    list = "generator/verbs.lua", opening = "verbs.list = {",
    row = [[{ name = "added", help = "greets" },]],
    run = "added --name %s", of = "reader", prints = "hello reader\n", help = "--help" },
}

local function execute(...) assert(os.execute(string.format(...))) end

-- The output of the program on stdout and stderr, if it ends with 0.
local function output_of(arguments)
  local pipe = assert(io.popen(("cd '%s' && GENTABLES_HOME='%s' '%s' %s 2>&1"):format(work, home, program,
    arguments)))
  local output = pipe:read "a"
  luaunit.assertTrue(pipe:close(), arguments .. ": " .. output)
  return output
end

local function add(example)
  execute("rm -rf '%s' && mkdir -p '%s/out'", home, home)
  execute("cp -r '%s/generator' '%s/templates' '%s'", source, source, home)
  luaunit.assertFalse(file.exists(home .. "/" .. example.file), example.file)
  assert(file.write(home .. "/" .. example.file, example.text))
  local list = assert(file.read(home .. "/" .. example.list))
  local _, last = list:find("\n" .. example.opening .. "\n", 1, true)
  luaunit.assertNotNil(last, example.opening)
  list = list:sub(1, last) .. example.row .. "\n" .. list:sub(last + 1)
  assert(file.write(home .. "/" .. example.list, list))
end

local page = assert(file.read(source .. "/docs/development.md"))

-- The table "How to add something": { [thing] = the rest of its row }.
local function documented()
  local found = {}
  for thing, what in page:match("\n| to add | write |\n(.-)\n\n"):gmatch("| ([^|\n]+) | ([^|\n]+) |") do
    found[thing] = what
  end
  return found
end

-- Whether one of the folders that `text` mentions holds the file at `path`.
local function has_folder_of(text, path)
  for folder in text:gmatch("`([^`]+/)`") do
    if path:sub(1, #folder) == folder then return true end
  end
  return false
end

local has_gnuplot = require("pages.gnuplot").is_here()

local function check(example)
  local what = documented()[example.thing]
  luaunit.assertNotNil(what, example.thing)
  luaunit.assertStrContains(what, "`" .. example.list .. "`")
  luaunit.assertTrue(has_folder_of(what, example.file), what)
  add(example)
  local name = example.row:match('"([^"]+)"')
  if example.help then luaunit.assertStrContains(output_of(example.help), name) end
  if example.needs_gnuplot and not has_gnuplot then return end
  if example.input then assert(file.write(example.of, example.input)) end
  local output = output_of(example.run:format("'" .. example.of .. "'"):gsub("OUT", home .. "/out"))
  if example.prints then luaunit.assertStrMatches(output, example.prints) end
  if example.writes then
    luaunit.assertStrContains(assert(file.read(home .. "/out/" .. example.writes[1])), example.writes[2])
  end
end

local tests = {}
for _, example in ipairs(examples) do
  tests["test_" .. example.file:gsub("%W", "_")] = function() check(example) end
end

function tests.test_documented_paths_exist()
  local count = 0
  local is_root = { generator = true, bench = true, templates = true, tests = true, cmake = true }
  for path, root in page:gmatch("`((%l+)/[^`\n]*)`") do
    if is_root[root] and not path:find "[%u*]" then -- else it is of a file to write
      luaunit.assertTrue(file.exists(source .. "/" .. path), path)
      count = count + 1
    end
  end
  luaunit.assertTrue(count > 20)
end

function tests.setUp()
  execute("mkdir -p '%s/runs' && cp '%s' '%s/runs/rank_0.json.gz'", work, trace, work)
end

local suites = dofile(arg[0]:match("^(.*/)") .. "../suites.lua")
return suites { { "added", tests } }
