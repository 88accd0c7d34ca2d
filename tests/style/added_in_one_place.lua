-- A file and a row add a thing, as in "How to add something" of docs/development.md: each example adds its
-- file, if it has one, and its row to a copy of the program's Lua and templates; then the program can do it,
-- and its help has the name. C and CUDA are rendered, and compiled with the sources of the bench.
local file = require "core.file"
local lists = require "lists.lists"
local luaunit = require "luaunit"

local source, work, program = os.getenv "SOURCE", os.getenv "WORK", os.getenv "GENTABLES"
local home = work .. "/home"
local trace = source .. "/tests/golden/trace/h100_bert/h100_bert.json.gz"
local rows = source .. "/tests/golden/sm90"

local function execute(...) assert(os.execute(string.format(...))) end

-- ---- what is compiled -----------------------------------------------------------------------------

-- A file of the bench with words replaced.
local function copy_of(path, words)
  local text = assert(file.read(source .. "/bench/" .. path))
  for old, new in pairs(words) do text = text:gsub(old, new) end
  return text
end

-- Renders a template of the bench with the lists of the copy.
local function render(name, arguments)
  execute("GENTABLES_HOME='%s' '%s' template '%s/templates/bench/%s.tmpl' %s --out '%s/%s'", home, program,
    home, name, arguments or "", home, name)
end

-- Runs a compiler in the folder of the copy. The added file is found before those of the sources.
local function compile(compiler, arguments)
  execute("cd '%s' && S='%s/bench' && %s -I bench -I bench/cuda/kernels -I $S -I $S/cuda/kernels -I . " ..
    "-I $S/../tests/stand_ins/engine %s", home, source, compiler, arguments)
end
local C = (os.getenv "CC" or "cc") .. " -std=gnu17 -O1 -D_GNU_SOURCE"
local CXX = (os.getenv "CXX" or "c++") .. " -std=c++17 -O0"

-- Fails unless an object has a symbol, with a letter of nm: T, a function; D or R, data; U, undefined.
local function check_symbol(object, letter, name)
  luaunit.assertTrue(os.execute(("nm '%s/%s' | grep -q ' %s %s$'"):format(home, object, letter, name)), name)
end

-- The added epilogue is right, and a wrong byte of its result is found.
local FUSED_CALL = [[
#include "calls/cell.h"
#include "calls/cell_check.h"
#include "host/epilogue.h"
#include <stdio.h>
int main(void) {
    enum { ADDED = FUSION_RESIDUAL_RMS_NORM_QUANT_ADDED };
    for (int dtype = 0; dtype < DTYPES; dtype++) {
        struct shape shape = {.dtype = dtype, .fusion = ADDED, .num_tokens = 3, .hidden_size = 80};
        struct cell cell;
        struct epilogue epilogue;
        char reason[160];
        if (cell_open(&cell, &shape, 0, 1, 7) != 0) return 1;
        struct call call = cell_call(&cell, 0);
        cell_poison(&cell);
        epilogue_begin(&epilogue, kernels_best(), &call, 0);
        epilogue_consume(&epilogue, &call.input, 1, call_elements(&call));
        if (!cell_check(&cell, 0, SUM_FP32, reason, sizeof reason)) return puts(reason), 1;
        cell.out[cell.out_bytes - 1] ^= 0x60;
        if (cell_check(&cell, 0, SUM_FP32, reason, sizeof reason)) return puts("a wrong byte passes"), 1;
        cell_close(&cell);
    }
    return 0;
}
]]

local function compile_fusion()
  for _, name in ipairs { "lists.h", "kernels.c", "fusion_files.h", "cuda_helpers.cu" } do render(name) end
  assert(file.write(home .. "/call.c", FUSED_CALL))
  compile(C .. [[ -ffp-contract=off -DKERNELS_SYMBOL=kernels_portable '-DKERNELS_ISA="portable"']] ..
    " -DCHECK_KERNEL=check_kernel_portable '-DBUILT_KERNELS=KERNELS(portable)'", "call.c kernels.c " ..
    "$S/calls/cell.c $S/calls/cell_check.c $S/calls/check_kernels.c $S/elements/element.c " ..
    "$S/elements/kernels.c $S/elements/traffic.c $S/host/epilogue.c -o call -lm")
  execute("'%s/call'", home)
  compile(CXX .. " -x c++", "-c cuda_helpers.cu -o helpers.o")
  check_symbol("helpers.o", "T", "gentables_epilogue_bf16_added")
  check_symbol("helpers.o", "T", "gentables_quantise_fp32_added")
end

local function compile_kernel()
  for _, name in ipairs { "lists.h", "fusion_files.h", "kernel_files.h" } do render(name) end
  render("cuda_kernels.cu", "tp=2 threads=1024")
  compile(CXX .. " -x c++", "-c cuda_kernels.cu -o kernels.o")
  check_symbol("kernels.o", "T", "gentables_added_bf16_fp32_nvfp4_tp2")
  compile(CXX, "-DFEW_CASES -DCASES_TP=2 -c $S/../tests/bench/cuda/kernels/kernel_cases.cpp -o cases.o")
  execute("grep -q 'ADDED' '%s/cases.o'", home) -- a case of the tests
end

local function compile_strategy()
  render "lists.h"
  compile(C, "-c bench/host/strategies/added.c -o added.o")
  compile(C, "-c $S/host/candidates.c -o candidates.o")
  check_symbol("added.o", "[DR]", "strategy_added")
  check_symbol("candidates.o", "U", "strategy_added")
end

-- The largest skew of a measurement is a figure, and is printed as one.
local ADDED_FIGURE = [[

static double figure_added_us(const struct measurement *measured) {
    return fmax(measured->skews_us[0], measured->skews_us[1]);
}

]]
local FIGURES_CALL = [[
#include "measure/figures.h"
int main(void) {
    double figures[FIGURES], times_us[2] = {2, 4}, skews_us[2] = {0.5, 0.25};
    figures_of(&(struct measurement){.time_us = summarise(times_us, 2), .times_us = times_us,
                                     .skews_us = skews_us}, figures);
    figures_write(stdout, figures);
}
]]

local function compile_figure()
  render "figures_list.h"
  local text = copy_of("measure/figures.c", { ["\n// %-%-%-%- the list"] = ADDED_FIGURE .. "// the list" })
  assert(file.write(home .. "/figures.c", text))
  assert(file.write(home .. "/call.c", FIGURES_CALL))
  compile(C, "-I $S/measure call.c figures.c $S/elements/statistics.c -o call -lm")
  local printed = assert(io.popen(("'%s/call'"):format(home))):read "a"
  luaunit.assertStrMatches(printed, " time_us=3%.0000 low_us=2%.0000 .* skew_us=0%.3750 .* added_us=0%.5000")
end

-- ---- examples -------------------------------------------------------------------------------------

-- thing: of the table in docs/development.md; file (maybe nil), list: below the sources; opening: the line
-- that opens the list; last: `row` is added at its end, not at its beginning; run: a command that uses it;
-- prints: the pattern of its output; writes: a file and a text in it; help: a command that prints the name;
-- compile: a function that compiles it.
local examples = {
  { thing = "a fusion: RMSNorm and a quantiser", file = "bench/fusions/added.h",
    text = copy_of("fusions/fp8.h", { fp8 = "added", Fp8 = "Added" }),
    list = "generator/lists/lists.lua", opening = "lists.fusions = {", last = true,
    row = [[{ name = "RESIDUAL_RMS_NORM_QUANT_ADDED", short = "added", quantises = "RESIDUAL_RMS_NORM",
      code_bits = 8, scale = 1 / 128, result = "codes" },]],
    run = "generate --data-dir %s --arch sm90 --out OUT --formats c", of = rows,
    writes = { "allreduce_table.h",
      ("_FUSION_RESIDUAL_RMS_NORM_QUANT_ADDED = %d\n"):format(#lists.fusions) },
    compile = compile_fusion },
  { thing = "a strategy on GPUs", file = "bench/cuda/kernels/added.h",
    text = copy_of("cuda/kernels/twoshot.h", { twoshot = "added", TWOSHOT = "ADDED",
      reduce_range = "reduce_added" }),
    list = "generator/lists/lists.lua", opening = "lists.strategies = {",
    row = [[{ name = "ADDED", backend = "cuda", accumulate = "fp32", mark = "AD", colour = "#0072b2",
      cuda = { kernel = "added", messages = "2", slices = true, links = bus_factors.AllReduce,
        needs = "P2P" }, help = "an example" },]],
    run = "lua %s", of = work .. "/names.lua",
    input = 'for _, name in ipairs(require("lists.lists").strategies_of("cuda", true)) do print(name) end',
    prints = "ADDED\n.*", compile = compile_kernel },
  { thing = "a strategy on CPUs", file = "bench/host/strategies/added.c",
    text = copy_of("host/strategies/oneshot.c", { strategy_oneshot = "strategy_added" }),
    list = "generator/lists/lists.lua", opening = "lists.strategies = {",
    row = [[{ name = "ADDED", backend = "host", source = "added", accumulate = "fp32", mark = "AD",
      colour = "#0072b2", help = "an example" },]],
    run = "lua %s", of = work .. "/names.lua",
    input = 'for _, name in ipairs(require("lists.lists").strategies_of("host", true)) do print(name) end',
    prints = "ADDED\n.*", compile = compile_strategy },
  { thing = "a column of the rows", list = "generator/lists/columns.lua", opening = "return {", last = true,
    row = [[{ name = "added (us)", key = "added_us", ours = true, filled = true, bench = "sometimes",
      pool = "median" },]],
    run = "merge %s --out OUT/rows.csv", of = work .. "/benchmark.tp2.sm90.csv",
    input = "world_size,dtype,size,num_tokens,hidden_size,strategy,fusion,time (us),added (us)\n" ..
      "2,bfloat16,2048,1,1024,ONESHOT,NONE,5.5,7.25\n",
    writes = { "rows.csv", ",,,,,,,,7.2500\n" }, compile = compile_figure },
  { thing = "an output format", file = "templates/tables/added.tsv.tmpl", text = [[
% for _, tp_table in ipairs(tp_tables) do
${tp_table.tp}	${table.concat(tp_table.num_tokens, ",")}
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
        time_us = source:time(line, "time", words[2]) })
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
  if example.file then
    luaunit.assertFalse(file.exists(source .. "/" .. example.file), example.file)
    execute("mkdir -p '%s/%s'", home, example.file:match "^(.*)/")
    assert(file.write(home .. "/" .. example.file, example.text))
  end
  local list = assert(file.read(home .. "/" .. example.list))
  local _, last = list:find("\n" .. example.opening .. "\n", 1, true)
  luaunit.assertNotNil(last, example.opening)
  if example.last then last = list:find("\n}\n", last, true) end
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

-- Whether one of the folders that `text` mentions, alone or in FOLDER/NAME.h, holds the file at `path`.
local function has_folder_of(text, path)
  for folder in text:gmatch("`([^`]+/)%u*%.?%l?`") do
    if path:sub(1, #folder) == folder then return true end
  end
  return false
end

local has_gnuplot = require("pages.gnuplot").is_here()

local function check(example)
  local what = documented()[example.thing]
  luaunit.assertNotNil(what, example.thing)
  luaunit.assertStrContains(what, "`" .. example.list .. "`")
  if example.file then luaunit.assertTrue(has_folder_of(what, example.file), what) end
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
  if example.compile then example.compile() end
end

local tests = {}
for _, example in ipairs(examples) do
  tests["test_" .. (example.file or example.thing):gsub("%W", "_")] = function() check(example) end
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
