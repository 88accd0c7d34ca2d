-- gentables lua choice.lua: the candidates, and that the choice of a run is that of the tables of its rows;
-- the ops of the command line by all their names, and the texts of sizes and splits.
local luaunit = require "luaunit"

local choice = require "tune.choice"
local choices = require "core.choose"
local failure = require "failure"
local lists = require "lists.lists"
local pass_input = require "tune.pass_input"
local rows = require "core.rows"
local to_rows = require "tune.to_rows"

local tests = {}

-- Results of launches with these times.
local function results(strategy, times, epilogue)
  local out = {}
  for i, time_us in ipairs(times) do
    out[i] = { strategy = strategy, epilogue = epilogue or "none", time_us = time_us, low_us = 0.9 * time_us,
      high_us = 1.1 * time_us, samples = 5, accumulate = "native", placement = "dedicated" }
  end
  return out
end

local function cell(size, ...)
  local made = { op = "broadcast", dtype = "float32", world_size = 2, size = size, candidates = {},
    results = {}, no_time = {} }
  for _, of in ipairs { ... } do table.move(of, 1, #of, #made.results + 1, made.results) end
  return made
end

local function job(launches, ...)
  return { arch = "host", launches = launches, nodes = 1, world_sizes = { 2 }, excluded = {}, cells = { ... },
    candidates = { MPI = {}, DIRECT = {}, MPI_BASIC_LINEAR = {}, ONESHOT = {}, TWOSHOT = {} } }
end

function tests.test_a_strategy_that_lacks_a_launch_does_not_compete()
  local of = cell(1024, results("MPI", { 4, 4, 4 }), results("DIRECT", { 1, 1 }))
  choice.make(job(3, of))
  luaunit.assertEquals(of.best.strategy, "MPI")
  luaunit.assertNil(of.runner_up)
  luaunit.assertEquals(of.no_time, { { strategy = "DIRECT", epilogue = "none",
    reason = "has a time in 2 of 3 launches" } })
end

function tests.test_a_strategy_without_a_time_in_a_launch_or_left_out_does_not_compete()
  local wrong = cell(1024, results("MPI", { 4, 4, 4 }), results("DIRECT", { 1, 1 }))
  wrong.no_time = { { strategy = "DIRECT", epilogue = "none", reason = "wrong result" } }
  local left_out = cell(2048, results("MPI", { 4, 4, 4 }), results("MPI_BASIC_LINEAR", { 1, 1, 1 }))
  local of = job(3, wrong, left_out)
  of.excluded.MPI_BASIC_LINEAR = "crashed"
  choice.make(of)
  luaunit.assertEquals(wrong.best.strategy, "MPI")
  luaunit.assertEquals(left_out.best.strategy, "MPI")
  luaunit.assertEquals(#wrong.no_time, 1)
  luaunit.assertEquals(#to_rows.records(of, 2), 2)
end

-- At the largest size launches disagree about which is faster.
local function noisy()
  return job(5,
    cell(1024, results("DIRECT", { 1.18, 1.15, 1.04, 0.36, 0.92 }),
      results("MPI_BASIC_LINEAR", { 2.2, 2.11, 2.06, 0.87, 1.93 })),
    cell(16384, results("DIRECT", { 4.6, 6.08, 4.63, 1.75, 4.29 }),
      results("MPI_BASIC_LINEAR", { 7.54, 11.02, 6.25, 4.62, 6.04 })),
    cell(65536, results("DIRECT", { 17.54, 14.64, 16.29, 6.37, 19.61 }),
      results("MPI_BASIC_LINEAR", { 16.54, 15.2, 12.58, 10.19, 11.91 })))
end

function tests.test_the_choice_is_that_of_the_tables_of_the_same_rows()
  local of = noisy()
  choice.make(of)
  local path = os.tmpname()
  local handle <close> = assert(io.open(path, "w"))
  handle:write(assert(rows.text(path, to_rows.records(of, 2))))
  handle:close()
  local canonical = assert(choices.select(assert(rows.read { path }), { lookup = "nearest" }))
  os.remove(path)
  for t, each in ipairs(of.cells) do
    local of_table = canonical:cell(1, 1, 1, t)
    luaunit.assertEquals({ each.best.strategy, each.state, each.confidence },
      { of_table.strategy, of_table.state, of_table.confidence })
  end
  luaunit.assertEquals(of.cells[1].best.strategy, "DIRECT")
  luaunit.assertEquals({ of.cells[1].state, of.cells[3].state }, { "certain", "uncertain" })
end

-- One is the faster in each launch, by 0.1 %.
function tests.test_candidates_that_hardly_differ_are_a_tie()
  local times, others = {}, {}
  for i = 1, 16 do times[i], others[i] = 4 + i / 10, 1.001 * (4 + i / 10) end
  local of = job(16, cell(1024, results("DIRECT", times), results("MPI", others)))
  choice.make(of)
  luaunit.assertEquals(of.cells[1].state, "tie")
end

function tests.test_a_size_that_no_row_can_hold_has_no_state()
  local of = job(3, cell(rows.HIDDEN_SIZE_NONE, results("DIRECT", { 4, 4, 4 }), results("MPI", { 3, 3, 3 })))
  choice.make(of)
  luaunit.assertEquals(of.cells[1].best.strategy, "MPI")
  luaunit.assertNil(of.cells[1].state)
end

function tests.test_a_clear_winner_wins_at_any_place()
  local of = job(3, cell(1024, results("DIRECT", { 1, 1.01, 1 }), results("MPI", { 2, 2, 2.01 })),
    cell(4096, results("DIRECT", { 4, 4, 4.01 }), results("MPI", { 2, 2.01, 2 })))
  choice.make(of)
  luaunit.assertEquals(of.cells[1].best.strategy, "DIRECT")
  luaunit.assertEquals(of.cells[2].best.strategy, "MPI")
end

function tests.test_a_pair_is_chosen_apart_from_the_sum_alone()
  local of = cell(8192, results("ONESHOT", { 5, 5, 5 }, "alone"), results("ONESHOT", { 6, 6, 6 }, "fused"),
    results("ONESHOT", { 9, 9, 9 }, "separate"), results("MPI", { 3, 3, 3 }, "alone"),
    results("MPI", { 8, 8, 8 }, "separate"), results("TWOSHOT", { 4, 4, 4 }, "alone"),
    results("TWOSHOT", { 9, 9, 9 }, "fused"), results("TWOSHOT", { 7, 7, 7 }, "separate"))
  of.op, of.fusion, of.hidden_size, of.num_tokens = "allreduce", "RESIDUAL_RMS_NORM", 1024, 2
  local all = job(3, of)
  choice.make(all)
  luaunit.assertEquals({ of.best.strategy, of.best.epilogue }, { "ONESHOT", "fused" })
  luaunit.assertEquals(of.plain.strategy, "MPI")
  luaunit.assertEquals(of.best.fusion_gain, 1.5)
  local times = {}
  for _, record in ipairs(to_rows.records(all, 2)) do
    times[record.strategy .. " " .. record.fusion] = { record.time_us, record.separate_us or 0 }
  end
  luaunit.assertEquals(times["TWOSHOT RESIDUAL_RMS_NORM"], { 7, 7 }) -- its fused way is slower
  luaunit.assertEquals(times["ONESHOT RESIDUAL_RMS_NORM"], { 6, 9 })
  luaunit.assertEquals(times["MPI NONE"], { 3, 0 })
end

-- ---- the command line ---------------------------------------------------------------------------

local function names_of(args)
  local names, words = {}, {}
  for word in args.op:gmatch("[^,]+") do words[#words + 1] = word end
  for i, op in ipairs(pass_input.read_ops({ op = words, splits = args.splits }, "host")) do
    names[i] = op.name
  end
  return table.concat(names, ",")
end

function tests.test_ops_have_the_names_that_pytorch_gives_them()
  for op, words in pairs {
    allreduce = "all_reduce,torch.distributed.all_reduce,c10d::allreduce_,torch.ops.c10d.allreduce_.default,"
      .. "_c10d_functional.all_reduce.default,torch.ops._c10d_functional.all_reduce_,dist.all_reduce",
    allgather = "_allgather_base,c10d._allgather_base_,all_gather_into_tensor_out,"
      .. "torch.ops._c10d_functional.all_gather_into_tensor_out.default,"
      .. "torch.distributed.all_gather_into_tensor",
    reducescatter = "_reduce_scatter_base,c10d::_reduce_scatter_base_,"
      .. "torch.distributed.reduce_scatter_tensor",
    alltoall = "c10d.alltoall_base_,c10d::alltoall_,torch.distributed.all_to_all_single",
    broadcast = "c10d.broadcast_,torch.distributed.broadcast",
  } do
    for word in words:gmatch("[^,]+") do luaunit.assertEquals(names_of { op = word }, op) end
  end
  for _, word in ipairs { "torch.all_reduce.of.mine", "gather", "c10d.barrier" } do
    failure(names_of, { op = word })
  end
end

function tests.test_splits_take_no_op_away()
  luaunit.assertEquals(names_of { op = "alltoall,alltoallv", splits = "3:1" }, "alltoall,alltoallv")
  luaunit.assertEquals(names_of { op = "alltoallv,all_to_all_single", splits = "3:1" }, "alltoallv,alltoall")
  luaunit.assertEquals(names_of { op = "all_to_all_single", splits = "3:1" }, "alltoallv")
end

-- The input of a pass.
local function notes_of(ops, sizes, tp_sizes, args)
  args.dtype, args.hidden_size = "float32", args.hidden_size or "4096"
  local said = {}
  local candidate = { name = "MPI", usual = true, ops = {} }
  local progress = { print = function(_, text) said[#said + 1] = text end }
  local of = { ops = {}, sizes = sizes, world_sizes = tp_sizes, backend = "host", progress = progress,
    candidates = { candidate, MPI = candidate } }
  for i, name in ipairs(ops) do
    of.ops[i], candidate.ops[name] = lists.find("ops", name), true
  end
  return pass_input.cells(of, args), said
end

function tests.test_sizes_that_an_epilogue_rounds_are_reported()
  local cells, said = notes_of({ "allreduce" }, { 1024, 4096, 32768, 40000 }, { 2, 4 },
    { fusion = "RESIDUAL_RMS_NORM" })
  luaunit.assertEquals(#cells, 4)
  luaunit.assertEquals(#said, 1)
  luaunit.assertStrContains(said[1], "of 16 KiB each: 1 KiB as 16 KiB, 4 KiB as 16 KiB, 40000 B as 32 KiB")
end

function tests.test_an_epilogue_of_no_allreduce_is_rejected_or_reported()
  local fusion = { fusion = "RESIDUAL_RMS_NORM" }
  luaunit.assertStrContains((failure(notes_of, { "allgather" }, { 1024 }, { 2 }, fusion)),
    "--fusion requires --op allreduce")
  local _, said = notes_of({ "allreduce", "allgather" }, { 16384 }, { 2 }, { fusion = "RESIDUAL_RMS_NORM" })
  luaunit.assertStrContains(said[1], "allgather is measured without")
end

function tests.test_repeated_weights_are_reported()
  local _, said = notes_of({ "alltoallv" }, { 16384 }, { 2, 3, 4 }, { splits = "3:1" })
  luaunit.assertEquals(#said, 2)
  luaunit.assertStrContains(said[1], "at TP 3 is 3:1:3: the weights repeat")
  luaunit.assertStrContains(said[2], "at TP 4 is 3:1:3:1: the weights repeat")
end

return require "suites" { { "tune_choice", tests } }
