-- Sweeps, configurations and files with a rank in their names are found by their names.
local file = require "core.file"
local run_folder = require "trace.runs.run_folder"
local lib = require "unit.trace.lib"
local luaunit = require "luaunit"

local TestLayout = {}

function TestLayout.setUp() lib.clean() end

local function touch(...)
  for _, name in ipairs { ... } do
    local path = lib.work .. "/" .. name
    assert(file.make_folder(path:match("^(.*)/")))
    assert(file.write(path, "{}"))
  end
end

-- The found files, as one text for each configuration.
local function found(...)
  local paths, out = {}, {}
  for i, name in ipairs { ... } do paths[i] = lib.work .. "/" .. name end
  for i, configuration in ipairs(run_folder.find(paths).configurations) do
    local files = {}
    for k, entry in ipairs(configuration.files) do
      files[k] = ("%s:%s"):format(entry.rank, entry.path:match("[^/]*$"))
    end
    out[i] = ("%s %s %s"):format(configuration.threads, configuration.channels, table.concat(files, " "))
  end
  return out
end

function TestLayout.test_sweeps_of_any_threads_channels_and_ranks()
  touch("experiments/sweep_1/1024thread/nccl_7channels/torch_profiler/rank10/a.json",
    "experiments/sweep_1/1024thread/nccl_7channels/torch_profiler/rank9/a.json.gz",
    "experiments/sweep_1/64thread/nccl_112channels/torch_profiler/rank0/a.json.zst",
    "experiments/sweep_1/64thread/nccl_112channels/run_output.log",
    "experiments/sweep_1/tracelens_analysis/64thread/individual_reports/perf_112ch_rank0.json")
  local wanted = { "64 112 0:a.json.zst", "1024 7 9:a.json.gz 10:a.json" }
  luaunit.assertEquals(found "experiments", wanted)
  luaunit.assertEquals(found "experiments/sweep_1/", wanted)
  luaunit.assertEquals(found "experiments/sweep_1/1024thread", { wanted[2] })
  luaunit.assertEquals(found "experiments/sweep_1/1024thread/nccl_7channels", { wanted[2] })
  luaunit.assertEquals(found "experiments/sweep_1/1024thread/nccl_7channels/torch_profiler", { wanted[2] })
end

function TestLayout.test_files_that_name_their_rank()
  touch("run/traces_rank_0_step_8.json", "run/traces_rank_11_step_8.json", "run/x-rank-2.json.gz",
    "run/y_rank[3].pt.trace.json", "run/rank4.json", "run/notes.txt")
  luaunit.assertEquals(found "run", { "nil nil 0:traces_rank_0_step_8.json 2:x-rank-2.json.gz "
    .. "3:y_rank[3].pt.trace.json 4:rank4.json 11:traces_rank_11_step_8.json" })
  luaunit.assertEquals(found("run/rank4.json", "run/x-rank-2.json.gz"),
    { "nil nil 2:x-rank-2.json.gz 4:rank4.json" })
end

function TestLayout.test_merged_traces_of_a_folder_are_left_out()
  touch("run/trace0.json", "run/trace1.json", "run/merged.json.gz", "run/256thread_28ch_merged.json")
  luaunit.assertEquals(found "run", { "nil nil nil:trace0.json nil:trace1.json" })
  luaunit.assertEquals(found "run/merged.json.gz", { "nil nil nil:merged.json.gz" })
end

function TestLayout.test_several_sweeps_are_not_guessed_at()
  touch("experiments/sweep_1/1thread/nccl_1channels/torch_profiler/rank0/a.json",
    "experiments/sweep_2/1thread/nccl_1channels/torch_profiler/rank0/a.json")
  luaunit.assertErrorMsgContains("contains 2 sweeps", found, "experiments")
end

function TestLayout.test_a_configuration_without_traces_is_its_own_problem()
  touch("s/1thread/nccl_1channels/torch_profiler/rank0/a.json", "s/1thread/nccl_2channels/run_output.log")
  local list = run_folder.find { lib.work .. "/s" }.configurations
  luaunit.assertNil(list[1].problem)
  luaunit.assertStrContains(list[2].problem, "nccl_2channels: no trace here")
end

function TestLayout.test_numbers_and_ranges()
  luaunit.assertEquals(run_folder.numbers({ "0-2", "7,9" }, "ranks"),
    { [0] = true, [1] = true, [2] = true, [7] = true, [9] = true })
  luaunit.assertErrorMsgContains("--ranks: 3-1 is not a number", run_folder.numbers, { "3-1" }, "ranks")
end

function TestLayout.test_a_filter_without_a_match_lists_the_names()
  touch("s/1thread/nccl_1channels/torch_profiler/rank0/a.json")
  luaunit.assertErrorMsgContains("valid: threads 1; channels 1; ranks 0", run_folder.select,
    run_folder.find { lib.work .. "/s" }, { threads = { [2] = true } })
end

return require "suites" { { "TestLayout", TestLayout } }
