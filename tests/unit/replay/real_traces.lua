-- Real traces: the choice of ops, and that traces of AMD's GPUs can be computed here.
local lib = require "unit.replay.lib"
local luaunit = require "luaunit"

local data = os.getenv("GENTABLES_DATA")
if not data then require "skip" "GENTABLES_DATA is not set" end

local out, sheets = lib.out, lib.sheets

local TestReal = {}

-- 137 of the 166 shapes of this rank make 99%. Nothing is computed: the program is missing.
function TestReal.test_the_ops_of_a_training_step()
  lib.clean()
  lib.run("replay", data .. "/traces/sampled_rank-0.json.gz", "--out", out, "--csv", "--program",
    "/nowhere/x")
  local rows = lib.rows(sheets, "gemm_node_replay")
  luaunit.assertEquals(#rows, 137)
  luaunit.assertTrue(tonumber(rows[136].profile_time_sum_cum_pct) < 0.99)
  luaunit.assertTrue(tonumber(rows[137].profile_time_sum_cum_pct) >= 0.99)
end

function TestReal.test_convolutions_of_a_resnet()
  local lacks = lib.lacks("onednn")
  luaunit.skipIf(lacks, lacks)
  lib.clean()
  lib.ends_with(0, lib.run("replay", data .. "/traces/mi300_resnet_rank0of8.json.gz", "--out", out, "--csv",
    "--samples", "1"))
  local rows = lib.rows(sheets, "conv_node_replay")
  local backward = 0
  for _, row in ipairs(rows) do
    luaunit.assertTrue(tonumber(row["Avg. replay time (us)"]) > 0, row.note)
    if row.name == "aten::convolution_backward" then backward = backward + 1 end
  end
  luaunit.assertTrue(backward > 3 and #rows - backward > 3)
end

return require "suites" { { "TestReal", TestReal } }
