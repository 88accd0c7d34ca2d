-- A replayed time is compared with that of a trace only if both were computed in the same type; facts of the
-- traces that no row has are reported. A stand-in replaces gentables-replay.
local lib = require "unit.replay.lib"
local luaunit = require "luaunit"

local out, sheets = lib.out, lib.sheets

-- Answers 40 µs, in this type.
local function stand_in(computed)
  return lib.serving(([[
  warm="warm_mean_us=40 warm_median_us=40 warm_low_us=40 warm_high_us=40 warm_samples=6"
  cold="cold_mean_us=40 cold_median_us=40 cold_low_us=40 cold_high_us=40 cold_samples=6"
  echo "replayed id=x by=b computed=%s kernel=k $warm $cold note="]]):format(computed), "a processor")
end

local HERE = { device = "a processor", threads = 1 }
-- Like traces of gentables-workload on a processor.
local OURS = { device = "a processor", threads = 1,
  gentables = { computed_in = { ["c10::BFloat16"] = "float", ["c10::Half"] = "float" } } }

-- The row of one GEMM of this type; its kernel of 50 µs has this name.
local function replayed(computed, header, dtype, kernel)
  lib.clean()
  local one = lib.trace()
  one:run("aten::mm", 50, lib.mm(32, 24, 16, { types = { dtype, dtype } }), kernel)
  local path = lib.save(one, "t.json", header)
  lib.take(stand_in(computed))
  local code, _, errors = lib.run("replay", path, "--out", out, "--csv")
  luaunit.assertEquals({ code, errors }, { 0, "" })
  local row = lib.rows(sheets, "gemm_node_replay")[1]
  return row["Diff profile vs. replay (us)"], row["Diff profile vs. replay (pct)"], row.note
end

local TestCompared = {}

function TestCompared.test_a_trace_in_float32_is_not_compared_with_bfloat16()
  local us, percent, note = replayed("bfloat16", OURS, "c10::BFloat16", "k")
  luaunit.assertEquals({ us, percent }, { "", "" })
  luaunit.assertEquals(note, "no difference: traced in float32, replayed in bfloat16")
  luaunit.assertStrContains(lib.about(sheets, "Diff columns"), "empty if an op was computed in two types")
end

-- Only the trace's time includes the conversions; a note reports that.
function TestCompared.test_times_both_in_float32_are_compared()
  local us, percent, note = replayed("float32", OURS, "c10::BFloat16", "k")
  luaunit.assertEquals({ tonumber(us), tonumber(percent) }, { -10, -20 })
  luaunit.assertStrContains(note, "traced in float32; only the trace's time includes the conversion from")
  us, percent, note = replayed("float32", OURS, "float", "k")
  luaunit.assertEquals({ tonumber(us), tonumber(percent), note }, { -10, -20, "" })
  luaunit.assertEquals((replayed("float16", OURS, "c10::Half", "k")), "")
  luaunit.assertEquals(tonumber((replayed("float32", OURS, "c10::Half", "k"))), -10)
end

function TestCompared.test_a_part_of_an_op_is_not_compared()
  local us, percent, note = replayed("float32 partial=1", OURS, "float", "k")
  luaunit.assertEquals({ us, percent, note }, { "", "", "no difference: a part of the op was replayed" })
end

-- Traces without that fact, of an older gentables: the kernels' names have it.
function TestCompared.test_names_of_kernels_show_the_type_if_the_trace_does_not()
  local older = "openblas_SkylakeX_sgemm_of_bf16_NN"
  luaunit.assertEquals((replayed("bfloat16", HERE, "c10::BFloat16", older)), "")
  luaunit.assertEquals(tonumber((replayed("float32", HERE, "c10::BFloat16", older))), -10)
  for _, name in ipairs { "sm80_xmma_gemm_f32f32_tf32f32_f32_nn_n_tilesize64x64x8_stage3",
    "cutlass_80_tensorop_s1688gemm_64x64_32x6_tn_align4" } do
    local us, _, note = replayed("float32", HERE, "float", name)
    luaunit.assertEquals({ us, note }, { "", "no difference: traced in TF32, replayed in float32" })
  end
end

function TestCompared.test_others_are_traced_in_the_type_of_their_operands()
  luaunit.assertEquals(tonumber((replayed("bfloat16", HERE, "c10::BFloat16", "k"))), -10)
  luaunit.assertEquals((replayed("float32", HERE, "c10::BFloat16", "k")), "")
  local odd = { ["c10::BFloat16"] = 7, float = "odd" }
  for _, own in ipairs { 7, { computed_in = 7 }, { computed_in = odd } } do
    local header = { device = "a processor", threads = 1, gentables = own }
    luaunit.assertEquals(tonumber((replayed("bfloat16", header, "c10::BFloat16", "k"))), -10)
  end
end

-- An op in two types has one time, of both.
function TestCompared.test_a_trace_in_two_types_is_not_compared()
  for _, case in ipairs { { HERE, OURS }, { OURS, HERE } } do
    lib.clean()
    local paths = {}
    for rank, header in ipairs(case) do
      local one = lib.trace()
      one:run("aten::mm", 50, lib.mm(32, 24, 16, { types = { "c10::BFloat16", "c10::BFloat16" } }))
      paths[rank] = lib.save(one, ("t_rank_%d.json"):format(rank - 1), header)
    end
    lib.take(stand_in "bfloat16")
    lib.ends_with(0, lib.run("replay", paths[1], paths[2], "--out", out, "--csv"))
    local rows = lib.rows(sheets, "gemm_node_replay")
    luaunit.assertEquals({ #rows, rows[1]["Diff profile vs. replay (us)"] }, { 1, "" })
    luaunit.assertEquals(rows[1].note, "no difference: traced in more than one type, replayed in bfloat16")
  end
end

function TestCompared.test_kernels_of_two_types_in_one_trace_are_not_compared()
  for _, names in ipairs { { "ampere_sgemm", "a_tf32" }, { "a_tf32", "ampere_sgemm" } } do
    lib.clean()
    local one = lib.trace()
    for _, name in ipairs(names) do one:run("aten::mm", 50, lib.mm(32, 24, 16), name) end
    lib.take(stand_in "float32")
    lib.ends_with(0, lib.run("replay", lib.save(one, "t.json", HERE), "--out", out, "--csv"))
    local rows = lib.rows(sheets, "gemm_node_replay")
    luaunit.assertEquals({ #rows, rows[1]["Diff profile vs. replay (us)"] }, { 1, "" })
    luaunit.assertEquals(rows[1].note, "no difference: traced in more than one type, replayed in float32")
  end
end

function TestCompared.test_the_batch_report_compares_alike()
  lib.clean()
  local one = lib.trace()
  one:run("aten::mm", 50, lib.mm(32, 24, 16, { types = { "c10::BFloat16", "c10::BFloat16" } }))
  lib.save(one, "runs/a/t_rank_0.json", OURS)
  lib.take(stand_in "bfloat16")
  lib.ends_with(0, lib.run("trace", "report", "-b", lib.work .. "/runs", "-r", "--csv"))
  local row = lib.rows(lib.work .. "/runs/a/a_rank_0_node_replay_report_csvs", "gemm_node_replay")[1]
  luaunit.assertEquals(row["Diff profile vs. replay (us)"], "")
  luaunit.assertStrContains(row.note, "traced in float32, replayed in bfloat16")
end

-- ---- facts that no row has -----------------------------------------------------------------------------

-- Rank 0 has shapes; `fill` adds events to ranks 1 and 2. Returns the errors of replaying them, or of the
-- batch report.
local function beside(fill, is_batch)
  lib.clean()
  local whole, paths = lib.trace(), {}
  whole:run("aten::mm", 50, lib.mm(32, 24, 16))
  paths[1] = lib.save(whole, "runs/a/t_rank_0.json")
  for rank = 1, 2 do
    local other = lib.trace()
    fill(other)
    paths[rank + 1] = lib.save(other, ("runs/a/t_rank_%d.json"):format(rank))
  end
  lib.take(stand_in "float32")
  local words = { "replay", paths[1], paths[2], paths[3], "--out", out, "--csv" }
  if is_batch then
    words = { "trace", "report", "-b", lib.work .. "/runs", "-r", "-f", "rank_", "--csv" }
  end
  local _, errors = lib.ends_with(0, lib.run(table.unpack(words)))
  luaunit.assertEquals(select(2, errors:gsub("\n", "")), 1, errors)
  return errors
end

local function fill_without_shapes(trace)
  for _ = 1, 3 do trace:run("aten::mm", 50, {}) end
  trace:run("aten::addmm", 50, {})
end

function TestCompared.test_ranks_without_shapes_are_reported_once()
  local errors = beside(fill_without_shapes)
  luaunit.assertStrContains(errors, "/t_rank_1.json and 1 more: 8 ops left out: aten::addmm, aten::mm: shapes"
    .. " are missing; profile with record_shapes")
  luaunit.assertStrContains(lib.about(sheets, "note"), "t_rank_1.json and 1 more: 8 ops left out")
  errors = beside(fill_without_shapes, true)
  luaunit.assertStrContains(errors, "/t_rank_1.json and 1 more: 8 ops left out: aten::addmm, aten::mm:")
end

-- One in the working folder, and not "and 0 more".
function TestCompared.test_a_single_trace_is_named()
  replayed("bfloat16", OURS, "c10::BFloat16", "k")
  local text = lib.ends_with(0, lib.run_with(("env -C '%s'"):format(lib.work), "replay", "t.json", "--out",
    out, "--csv"))
  luaunit.assertStrContains(text, "replayed  t.json: 1 of 1 ops have a time")
end

function TestCompared.test_ranks_without_any_op_are_reported()
  local errors = beside(function(trace) trace:run("aten::relu", 50, {}) end)
  luaunit.assertStrContains(errors, "/t_rank_1.json and 1 more: no GEMM or convolution with kernels there;"
    .. " the chosen ops are of the other ranks")
end

return require "suites" { { "TestCompared", TestCompared } }
