-- model.lua, render.lua, summary.lua and choice_cost.lua: the model that a format gets for a folder of
-- rows; and how reader_limits.lua lists misses. Takes a folder to write to.
local choice_cost = require "formats.choice_cost"
local failure = require "failure"
local file = require "core.file"
local formats = require "formats.list"
local lists = require "lists.lists"
local luaunit = require "luaunit"
local model = require "formats.model"
local quantities = require "base.quantities"
local provenance = require "rows.provenance"
local reader_limits = require "frameworks.reader_limits"
local render = require "formats.render"
local rows = require "core.rows"
local sequences = require "base.sequences"
local summary = require "formats.summary"

local root = os.getenv "WORK"
local tests, count = {}, 0

local function record(changes)
  local made = { world_size = 2, dtype = "bfloat16", num_tokens = 1, hidden_size = 1024,
    strategy = "ONESHOT", fusion = "NONE", op = "allreduce", time_us = 4, low_us = 3, high_us = 5,
    samples = 20, bound_us = 1, mode = "eager", accumulate = "fp32", placement = "dedicated" }
  for key, value in pairs(changes or {}) do made[key] = value end
  made.size = made.num_tokens * made.hidden_size * lists.find("dtypes", made.dtype).bytes
  return made
end

-- A new folder of these rows; { [TP size] = records }.
local function folder(arch, tp_tables)
  count = count + 1
  local path = ("%s/%d"):format(root, count)
  os.execute(("rm -rf '%s'"):format(path)) -- of an earlier run
  assert(file.make_folder(path))
  for tp, records in pairs(tp_tables) do
    for _, made in ipairs(records) do made.world_size = tp end
    local csv = ("%s/benchmark.tp%d.%s.csv"):format(path, tp, arch)
    assert(file.write(csv, assert(rows.text(csv, records))))
  end
  return path
end

local function view(path, arch, name) return model.for_format(model.load(path, arch), formats.find(name)) end

function tests.test_tp_tables_are_ascending_and_have_the_winners()
  local path = folder("host", { [4] = { record { strategy = "MPI" } }, [16] = { record() },
    [2] = { record(), record { num_tokens = 8, strategy = "TWOSHOT" }, record { hidden_size = 64 } } })
  local seen = view(path, "host", "c")
  luaunit.assertEquals({ seen.tp_tables[1].tp, seen.tp_tables[2].tp, seen.tp_tables[3].tp }, { 2, 4, 16 })
  luaunit.assertEquals(seen.tp_tables[1].hidden_sizes, { 64, 1024 })
  local winners = seen.tp_table_of[2].fusions[1].rows
  luaunit.assertEquals(winners[1][1].name, "ONESHOT")
  luaunit.assertFalse(winners[1][2])
  luaunit.assertEquals(winners[2][2].name, "TWOSHOT")
  local names = {}
  for i, strategy in ipairs(seen.strategies) do names[i] = strategy.name end
  luaunit.assertEquals(names, { "MPI", "ONESHOT", "TWOSHOT" })
end

function tests.test_rows_of_unknown_mode_count_only_alone()
  local path = folder("sm90", {
    [2] = { record { mode = "unknown" }, record { mode = "eager", strategy = "NCCL" },
      record { mode = "graph" } },
    [4] = { record { mode = "unknown" }, record { mode = "graph", strategy = "NCCL" } },
    [8] = { record { mode = "graph" } } })
  local seen = view(path, "sm90", "c")
  luaunit.assertEquals(#seen.tp_tables, 2)
  luaunit.assertEquals(seen.tp_table_of[2].mode, "eager")
  luaunit.assertEquals(seen.tp_table_of[2].fusions[1].rows[1][1].name, "NCCL")
  luaunit.assertEquals(seen.tp_table_of[4].mode, "unknown")
  luaunit.assertEquals(seen.tp_table_of[4].fusions[1].rows[1][1].name, "ONESHOT")
end

function tests.test_the_spec_selects_dtype_and_cells()
  local path = folder("host", { [2] = { record { dtype = "float32" }, record { strategy = "TWOSHOT" } } })
  assert(file.write(path .. "/spec.lua", [[return { arch = "host", tp = { 2, 4 }, dtypes = { "float32" },
    fusions = { "NONE" }, hidden_sizes = { 512 }, num_tokens = { 1 }, table = { dtype = "float32" } }]]))
  local seen = view(path, "host", "c")
  luaunit.assertEquals(seen.tp_table_of[2].hidden_sizes, { 512, 1024 })
  luaunit.assertFalse(seen.tp_table_of[2].fusions[1].rows[1][1])
  luaunit.assertEquals(seen.tp_table_of[2].fusions[1].rows[2][1].name, "ONESHOT")
  luaunit.assertStrContains(render.text(seen.source, formats.find "table"),
    "host,4,NONE,float32,allreduce,eager,512,1,unmeasured,,,,,")
end

function tests.test_a_format_that_would_be_all_fallback_is_refused()
  local path = folder("host", { [2] = { record { dtype = "float16" }, record { dtype = "float32" } } })
  local source = model.load(path, "host")
  luaunit.assertStrContains((failure(render.text, source, formats.find "c")),
    "no row for allreduce_table.h, which has only bfloat16 allreduce eager; the rows are " ..
    "float16 allreduce eager; float32 allreduce eager; select them in a spec.lua there")
  luaunit.assertStrContains(render.text(source, formats.find "table"), "float16")
  luaunit.assertStrContains(render.text(source, formats.find "report"), "everything: no row is of bfloat16")
end

-- Rows of another tool; the message has advice.
function tests.test_the_advice_works_for_rows_of_another_tool()
  local path = folder("sm90", { [2] = { record { dtype = "float16", mode = "unknown" },
    record { dtype = "float32", mode = "unknown" } } })
  local advice = failure(render.text, model.load(path, "sm90"), formats.find "c"):match("there: (.*)")
  assert(file.write(path .. "/spec.lua", advice))
  local seen = view(path, "sm90", "c")
  luaunit.assertEquals(seen.axes, { dtype = "float16", op = "allreduce", mode = "eager" })
  luaunit.assertEquals(seen.tp_table_of[2].fusions[1].rows[1][1].name, "ONESHOT")
  local in_graphs = folder("host", { [2] = { record { mode = "graph" } } })
  advice = failure(render.text, model.load(in_graphs, "host"), formats.find "c"):match("there: (.*)")
  assert(file.write(in_graphs .. "/spec.lua", advice))
  luaunit.assertEquals(view(in_graphs, "host", "c").tp_table_of[2].mode, "graph")
end

function tests.test_without_a_spec_the_only_dtype_is_meant()
  local seen = view(folder("sm90", { [2] = { record { dtype = "float16", mode = "unknown" } } }), "sm90", "c")
  luaunit.assertEquals(seen.axes.dtype, "float16")
  luaunit.assertEquals(#seen.tp_tables, 1)
end

function tests.test_formats_that_leave_nothing_to_do_are_refused()
  luaunit.assertStrContains((failure(render.formats, { "trtllm" }, "host")),
    '--formats: "trtllm" names no format of host; valid formats: c, thresholds, ')
end

function tests.test_loopback_rows_enter_no_table_of_real_hardware()
  local records = { record { placement = "loopback" }, record { strategy = "NCCL", time_us = 4.5 } }
  local function winner(path, arch) return view(path, arch, "c").tp_table_of[2].fusions[1].rows[1][1].name end
  luaunit.assertEquals(winner(folder("sm90", { [2] = records }), "sm90"), "NCCL")
  local path = folder("sm90-loopback", { [2] = records })
  luaunit.assertEquals(winner(path, "sm90-loopback"), "ONESHOT")
  luaunit.assertStrContains((failure(model.load, path, "sm90")), "has no benchmark.tp{N}.sm90.csv")
end

function tests.test_a_winner_without_a_number_leaves_its_cell_to_the_next()
  local path = folder("sm90", { [2] = { record { strategy = "SYMM_MEM" }, record { time_us = 5 },
    record { strategy = "NCCL", time_us = 5, low_us = 4 } } })
  luaunit.assertEquals(view(path, "sm90", "c").tp_table_of[2].fusions[1].rows[1][1].name, "SYMM_MEM")
  luaunit.assertEquals(view(path, "sm90", "trtllm").tp_table_of[2].fusions[1].rows[1][1].name, "ONESHOT")
end

function tests.test_formats_are_chosen_by_name_and_arch()
  local function names(wanted, arch)
    local out = {}
    for i, format in ipairs(render.formats(wanted, arch)) do out[i] = format.name end
    return table.concat(out, " ")
  end
  local function check(arch, some, others)
    local chosen = " " .. names(nil, arch) .. " "
    for name in some:gmatch("%S+") do luaunit.assertStrContains(chosen, " " .. name .. " ") end
    for name in others:gmatch("%S+") do luaunit.assertNotStrContains(chosen, " " .. name .. " ") end
  end
  local every = " c thresholds table picture report"
  local of_mpi = " ompi ompi-v2 ompi-json ompi-parameters ompi-parameters-rules mpich"
  check("sm90", "trtllm nccl" .. every, "trtllm-header" .. of_mpi)
  check("host", of_mpi .. every, "trtllm trtllm-header nccl")
  check("sm90-loopback", "nccl" .. every, "trtllm trtllm-header" .. of_mpi)
  check("all", "trtllm-header", "trtllm nccl" .. every .. of_mpi)
  luaunit.assertEquals(names({ "table", "c" }, "sm90"), "table c")
end

function tests.test_the_report_has_machine_uncertain_choices_and_missing_times()
  local path = folder("host", { [2] = { record(), record { strategy = "MPI", time_us = 4.1 },
    record { num_tokens = 8, placement = "oversubscribed" } } })
  local csv = path .. "/benchmark.tp2.host.csv"
  assert(provenance.write(csv, file.read(csv), { world_size = 2, arch = "host", fingerprint = "f",
    machine = { cpu = "A CPU", cores = 2, mpi = "Open MPI 4.1.4", caches = { L1d = "48K" } },
    bench = { protocol = 1, hash = "h", isa = "avx512", compiler = "gcc-12" }, date = "2020-01-01",
    devices = { { at_end = { largest_switch_error_ulp = "0.71" } }, { at_end = {} },
      { at_end = { largest_switch_error_ulp = "0.62" } }, {} },
    refine = { seconds = 100, settles = 2, uncertain = 3, measures = 63 },
    no_time = { { dtype = "bfloat16", op = "allreduce", mode = "eager", fusion = "NONE", hidden_size = 1024,
      num_tokens = 1, strategy = "TWOSHOT", reason = "fewer tokens | than ranks" } } }))
  local report = render.text(model.load(path, "host"), formats.find "report")
  for _, text in ipairs { "| CPU | A CPU |", "| Caches | L1d 48K |",
    "| Largest error of sums in the switch | 0.71 units in the last place |",
    "| Bench | gcc-12, avx512, protocol 1 |", "| 1024 | ONESHOT? | ONESHOT* |", "more ranks than cores",
    "25 % (25 % to 25 %)",
    "\n1 certain, 0 ties, 1 uncertain; `--refine`, about 2 minutes, would settle 1 of them and measure 63 "
      .. "more cells.\n",
    "| 2 | 1 | TWOSHOT | fewer tokens \\| than ranks |" } do
    luaunit.assertStrContains(report, text)
  end
  luaunit.assertNotStrContains(report, "2020")
  luaunit.assertNotStrContains(report, root)
end

-- A format that cannot name MPI; and a table of other cells, which is not compared.
function tests.test_costs_are_of_the_same_cells()
  local cells = { record { strategy = "MPI", time_us = 2, low_us = 2, high_us = 2 }, record(),
    record { num_tokens = 8 } }
  local seen = view(folder("host", { [2] = cells }), "host", "thresholds")
  seen.canonical = view(folder("host", { [2] = { record(), record { num_tokens = 8 } } }), "host",
    "thresholds").canonical
  local _, total = choice_cost.of_names(seen)
  luaunit.assertEquals({ total.cells, total.other, total.cost }, { 2, 1, 0.5 })
  for _, changes in ipairs { { hidden_size = 64 }, { num_tokens = 16 }, { dtype = "float32" },
    { mode = "graph" }, { fusion = "RESIDUAL_RMS_NORM" } } do
    local other = view(folder("host", { [2] = { record(), record { num_tokens = 8 }, record(changes) } }),
      "host", "thresholds")
    seen.canonical = other.canonical
    luaunit.assertErrorMsgContains("tables of other cells", choice_cost.of_names, seen)
  end
end

-- Misses as columns, in which false is unknown.
local function columns_of(misses)
  local columns = {}
  for _, name in ipairs { "first", "last", "chosen", "answered", "mean", "most" } do
    columns[name] = sequences.map(misses, function(miss) return miss[name] or false end)
  end
  return columns
end

-- Of up to 20 misses, many with equal or unknown losses, the lines are the first 8 of the sorted ones.
function tests.test_misses_that_lose_most_are_listed_in_order()
  math.randomseed(1)
  local function loss(miss) return miss.most or math.huge end
  for number = 0, 2000 do
    local misses = {}
    for i = 1, number % 21 do
      local most = math.random(0, 3) / 4
      local known = most > 0 and most or nil
      misses[i] = { first = i, last = i, mean = known, most = known, answered = "ONESHOT",
        chosen = "NCCL" }
    end
    local sorted = table.move(misses, 1, #misses, 1, {})
    table.sort(sorted, function(a, b)
      if loss(a) == loss(b) then return a.first < b.first end
      return loss(a) > loss(b)
    end)
    local expected = {}
    for i = 1, math.min(#sorted, 8) do
      expected[i] = reader_limits.misses_in_words(columns_of { sorted[i] }, "2 ranks")[1]
    end
    if #sorted > 8 then
      local rest = "2 ranks: and %d more ranges of sizes, which lose less; GAPS in the file has all"
      expected[9] = rest:format(#sorted - 8)
    end
    luaunit.assertEquals(reader_limits.misses_in_words(columns_of(misses), "2 ranks"), expected)
  end
end

-- The lookup by powers of two gives hidden size 2048 the choice of 2880, as the format has no name for its
-- own.
function tests.test_costs_are_unknown_where_the_choice_has_no_time()
  local path = folder("sm90", { [2] = { record { hidden_size = 2048, strategy = "SYMM_MEM" },
    record { hidden_size = 2880 }, record { hidden_size = 4096 },
    record { hidden_size = 4096, strategy = "SYMM_MEM", time_us = 2, low_us = 2, high_us = 2 } } })
  local _, total = choice_cost.of_names(view(path, "sm90", "trtllm"))
  luaunit.assertEquals({ total.cells, total.other, total.unknown, total.cost, total.most },
    { 3, 2, 1, 0.5, 1 })
  local entry = sequences.find(summary.formats(model.load(path, "sm90")), function(one)
    return one.format.name == "trtllm"
  end)
  luaunit.assertStrContains(table.concat(entry.lines, "\n"), "in 2 of 3 cells it has no name for the best " ..
    "strategy, and has the best that it can name; mean cost over all cells with a known one: 50.00 %; at " ..
    "most 2.00 us (100.0 %) at hidden size 4096, 1 token of TP 2, NONE; in 1 cell its choice has no time " ..
    "at the cell's own shape, so the cost is unknown")
end

function tests.test_a_rounded_zero_has_no_sign()
  luaunit.assertEquals(quantities.fixed(-0.04, 1), "0.0")
  luaunit.assertEquals(quantities.fixed(-0.4, 0), "0")
  luaunit.assertEquals(quantities.fixed(-0.06, 1), "-0.1")
  luaunit.assertEquals(quantities.fixed(10.04, 1), "10.0")
end

function tests.test_short_names_stay_different()
  local short = summary.short_names { { name = "MPI" }, { name = "MPI_RECURSIVE_DOUBLING" },
    { name = "NCCL" }, { name = "MPI_RAPID_DELIVERY" }, { name = "MPI_RING" } }
  luaunit.assertEquals(short, { MPI = "MPI", MPI_RECURSIVE_DOUBLING = "MPI-RD", NCCL = "NCCL",
    MPI_RAPID_DELIVERY = "MPI_RAPID_DELIVERY", MPI_RING = "MPI_RING" })
end

return require "suites" { { "model", tests } }
