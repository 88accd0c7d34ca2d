-- If a backend can measure the arch, --sm_version without --data_dir sweeps TP 2, 4 and 8 on TensorRT-LLM's
-- grid, with AUTO if requested; a failing sweep ends it. The bench is simulated.
local failure = require "failure"
local file = require "core.file"
local lists = require "lists.lists"
local luaunit = require "luaunit"

local work = os.getenv("WORK")
local started

-- Stands in for system/child_process.lua: a child that prints one line and ends well or not.
local ends_well = true
local child_process = require "system.child_process"
function child_process.run(words, options)
  started = words
  luaunit.assertEquals(assert(load(file.read(words[3])))().hidden_sizes, lists.trtllm_grid.hidden_sizes)
  if ends_well then file.make_folder(words[5]) end
  options.on_line("TP 2: measured")
  return { well = ends_well, reason = "exit code 1", errors = "gentables: it broke\n" }
end

-- Stands in for a machine with GPUs, or, if `sm` is nil, without.
local sm = 90
require("surroundings.detection").sm = function() return sm, not sm and "no CUDA driver" or nil end

local trtllm_generator = require "sweep.trtllm_generator"
local named = { "ONESHOT", "TWOSHOT", "NCCL", "NCCL_SYMMETRIC" }

local function prepared(options)
  os.remove(work .. "/rows/spec.lua")
  local args = { sm_version = "89", save_csv_dir = work .. "/rows" }
  for name, value in pairs(options) do args[name] = value end
  trtllm_generator.prepare(args)
  return args, file.read(work .. "/rows/spec.lua")
end

local tests = {}

function tests.test_sweeps_the_grid_and_writes_beside_it()
  local args, text = prepared {}
  luaunit.assertEquals({ started[2], started[4], started[5] }, { "sweep", "--out", work .. "/rows" })
  local spec = assert(load(text))()
  luaunit.assertEquals(spec.arch, "sm89")
  luaunit.assertEquals(spec.tp, { 2, 4, 8 })
  luaunit.assertEquals(spec.num_tokens, lists.trtllm_grid.num_tokens)
  luaunit.assertEquals(spec.strategies, named)
  luaunit.assertEquals({ args.data_dir, args.out, args.formats, args.arch },
    { work .. "/rows", work .. "/rows/gen_heuristic_code", { "trtllm" }, "sm89" })
end

function tests.test_measures_auto_only_on_request()
  local _, text = prepared { enable_auto = true }
  luaunit.assertEquals(assert(load(text))().strategies, { named[1], named[2], named[3], named[4], "AUTO" })
end

function tests.test_passes_the_incumbent_on()
  prepared { enable_auto = true, incumbent = "there.h" }
  luaunit.assertEquals({ started[6], started[7], started[8] }, { "--exhaustive", "--incumbent", "there.h" })
end

function tests.test_a_failed_sweep_makes_no_table_and_leaves_no_spec()
  ends_well = false
  local message = failure(prepared, {})
  luaunit.assertFalse(file.exists(work .. "/rows/spec.lua"))
  failure(prepared, { save_csv_dir = work .. "/new" })
  luaunit.assertFalse(file.exists(work .. "/new"))
  ends_well = true
  luaunit.assertEquals(message, "the sweep of " .. work .. "/rows failed (exit code 1): it broke")
end

function tests.test_without_options_the_gpus_are_measured_into_data()
  os.remove("data/spec.lua")
  local args = {}
  trtllm_generator.prepare(args)
  luaunit.assertEquals({ started[2], started[4], started[5] }, { "sweep", "--out", "data" })
  luaunit.assertEquals(assert(load(file.read("data/spec.lua")))().arch, "sm90")
  luaunit.assertEquals({ args.data_dir, args.out, args.formats, args.arch },
    { "data", "data/gen_heuristic_code", { "trtllm" }, "sm90" })
end

function tests.test_a_spec_that_is_there_counts_for_its_own_arch_only()
  prepared {}
  local path = work .. "/rows/spec.lua"
  trtllm_generator.prepare { sm_version = "89", save_csv_dir = work .. "/rows" }
  luaunit.assertEquals(started[3], path)
  trtllm_generator.prepare { sm_version = "90", save_csv_dir = work .. "/rows" }
  luaunit.assertNotEquals(started[3], path)
  luaunit.assertEquals(assert(load(file.read(path)))().arch, "sm89")
end

function tests.test_the_incumbent_needs_a_sweep()
  local data_folder = require "surroundings.data_folder"
  local find = data_folder.find
  data_folder.find = function() return "data" end
  local message = failure(trtllm_generator.prepare,
    { sm_version = "90", enable_auto = true, incumbent = "there.h" })
  data_folder.find = find
  luaunit.assertEquals(message, "--incumbent requires a sweep; with the rows in data there is none")
end

function tests.test_without_gpus_it_prints_how_to_measure_the_host()
  sm = nil
  local message, code = failure(trtllm_generator.prepare, { save_csv_dir = work .. "/none" })
  local of_version = failure(prepared, { save_csv_dir = work .. "/none" })
  sm = 90
  luaunit.assertStrContains(of_version, "benchmark.tp{N}.sm89.csv in")
  luaunit.assertStrContains(of_version, "no GPU to measure: no CUDA driver; sh cmake/dev.sh gen-tables")
  luaunit.assertEquals(code, 2)
  luaunit.assertStrContains(message, "no GPU to measure: no CUDA driver; sh cmake/dev.sh gen-tables measures")
  luaunit.assertFalse(file.exists(work .. "/none"))
end

return require "suites" { { "trtllm_generator", tests } }
