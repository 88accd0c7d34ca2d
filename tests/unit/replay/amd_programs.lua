-- AMD's programs for single ops: their command lines, and the values that are read from their output. PATH
-- has stand-ins for them; the real ones are not called.
local file = require "core.file"
local lib = require "unit.replay.lib"
local luaunit = require "luaunit"

local DEVICE = "AMD Instinct MI300X"
local out, sheets, ops = lib.out, lib.sheets, lib.out .. "/node_replay_report_ops"

local function trace()
  local one = lib.trace()
  one:run("aten::addmm", 300, lib.addmm(20, 30, 40, { 30 }, "c10::BFloat16"))
  one:run("aten::addmm", 200, lib.addmm(20, 30, 40, { 20, 30 }, "float"))
  one:run("aten::convolution", 70, lib.convolution(2, 4, 9, "c10::BFloat16"))
  return one
end

-- Each writes its arguments to a file and prints like the real one: the time in the documented place.
local function stand_ins()
  lib.clean()
  lib.program("hipblaslt-bench", ([[
printf '%%s\n' "$*" >>'%s/hipblaslt'
echo "hipBLASLt version: 1000"
echo "[0]:transA,transB,grouped_gemm,batch_count,m,n,k,hipblaslt-Gflops,hipblaslt-GB/s,us"
echo "    T,N,0,1,30,20,40,123.4,56.7, 250.5"
echo "    --Solution index: 7"
echo "    --Solution name:  Cijk_Alik_Bljk"
echo "    --kernel name:    Cijk_Alik_Bljk_kernel"
echo "done"
]]):format(lib.work))
  lib.program("MIOpenDriver", ([[
printf '%%s\n' "$*" >>'%s/miopen'
echo "MIOpen Forward Conv. Algorithm: 5"
echo "GPU Kernel Time Forward Conv. Elapsed: 0.084000 ms (average)"
echo "stats: fwd-conv3x3u1, 2, 4, 9, 9, 3, 3, 4, 1, 1, 1, 0, 0, 0.0845"
echo "one line more"
echo "another"
]]):format(lib.work))
  lib.program("rocminfo", ([[
echo "  Marketing Name:          AMD EPYC 9654"
echo "  Device Type:             CPU"
echo "  Marketing Name:          %s    "
echo "  Device Type:             GPU"
]]):format(DEVICE))
end

local function replay(device)
  local path = lib.save(trace(), "t.json", { device = device })
  local front = ("env PATH='%s/bin:%s'"):format(lib.work, os.getenv("PATH"))
  return lib.run_with(front, "replay", path, "--out", out, "--csv", "--samples", "1", "--program",
    lib.work .. "/bin/replay")
end

local TestAmd = {}

-- The host's libraries do not matter here.
function TestAmd.setUp()
  stand_ins()
  lib.program("replay", lib.serving '    echo "none id=x reason=not asked for"')
end

function TestAmd.test_command_lines_are_as_documented()
  lib.ends_with(1, replay(DEVICE)) -- no op has a time of the replay
  luaunit.assertEquals(file.read(ops .. "/gemm_001.hipblaslt-bench.txt"),
    "hipblaslt-bench --api_method c -m 30 -n 20 -k 40 --lda 40 --ldb 40 --ldc 30 --ldd 30 --stride_a 0 "
    .. "--stride_b 0 --stride_c 600 --stride_d 600 --alpha 1 --beta 0 --transA T --transB N --batch_count 1 "
    .. "--a_type bf16_r --b_type bf16_r --c_type bf16_r --d_type bf16_r --scale_type f32_r --bias_type f32_r "
    .. "--compute_type f32_r --bias_vector --algo_method heuristic --requested_solution 1 --cold_iters 100 "
    .. "--iters 100 --rotating 512 --flush --initialization trig_float --use_gpu_timer --print_kernel_info\n")
  luaunit.assertEquals(file.read(ops .. "/conv_001.MIOpenDriver.txt"),
    "MIOpenDriver convbfp16 -n 2 -c 4 -H 9 -W 9 -y 3 -x 3 -p 1 -q 1 -u 1 -v 1 -l 1 -j 1 -k 4 -m conv -g 1 "
    .. "-F 1 -t 1\n")
  luaunit.assertStrContains(file.read(ops .. "/gemm_002.hipblaslt-bench.txt"), "--beta 1 ")
end

function TestAmd.test_programs_are_run_as_saved_and_read()
  replay(DEVICE)
  local saved = file.read(ops .. "/gemm_001.hipblaslt-bench.txt")
  luaunit.assertEquals("hipblaslt-bench " .. file.read(lib.work .. "/hipblaslt"):match("[^\n]*\n"), saved)
  local gemm, conv = lib.rows(sheets, "gemm_node_replay")[1], lib.rows(sheets, "conv_node_replay")[1]
  luaunit.assertEquals(tonumber(gemm["Avg. gemm-bench time (us)"]), 250.5)
  luaunit.assertAlmostEquals(tonumber(conv["Avg. conv-bench time (us)"]), 84.5, 1e-9)
end

function TestAmd.test_their_times_are_compared_on_the_traced_device_alone()
  replay(DEVICE)
  local row = lib.rows(sheets, "gemm_node_replay")[1]
  luaunit.assertEquals(tonumber(row["Diff profile vs. gemm-bench (us)"]), -49.5)
  luaunit.assertEquals(tonumber(row["Diff profile vs. gemm-bench (pct)"]), -16.5)
  luaunit.assertEquals(row["Diff profile vs. replay (us)"], "")
  replay("AMD Instinct MI250X")
  row = lib.rows(sheets, "gemm_node_replay")[1]
  luaunit.assertEquals(tonumber(row["Avg. gemm-bench time (us)"]), 250.5)
  luaunit.assertEquals(row["Diff profile vs. gemm-bench (us)"], "")
end

function TestAmd.test_without_them_command_lines_are_written_all_the_same()
  os.execute(("rm '%s/bin/hipblaslt-bench' '%s/bin/MIOpenDriver'"):format(lib.work, lib.work))
  replay(DEVICE)
  luaunit.assertNotNil(file.read(ops .. "/gemm_001.hipblaslt-bench.txt"))
  luaunit.assertEquals(lib.rows(sheets, "gemm_node_replay")[1]["Avg. gemm-bench time (us)"], "")
  luaunit.assertStrContains(lib.about(sheets, "not here"), "its command lines are in the ops' files")
end

function TestAmd.test_unexpected_output_is_reported_in_the_row()
  lib.program("hipblaslt-bench", "echo 'Invalid combination'\n")
  lib.program("MIOpenDriver", "exit 3\n")
  replay(DEVICE)
  luaunit.assertStrContains(lib.rows(sheets, "gemm_node_replay")[1].note,
    "hipblaslt-bench: its output has no time at the expected place")
  luaunit.assertStrContains(lib.rows(sheets, "conv_node_replay")[1].note, "MIOpenDriver: ")
end

function TestAmd.test_traces_of_other_gpus_call_none_of_them()
  replay("NVIDIA H100")
  luaunit.assertNil((file.read(lib.work .. "/hipblaslt")))
  luaunit.assertNil((file.read(ops .. "/gemm_001.hipblaslt-bench.txt")))
end

return require "suites" { { "TestAmd", TestAmd } }
