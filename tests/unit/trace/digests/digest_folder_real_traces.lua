-- --digests DIR with real traces: the same bytes as from the traces, which a second run does not read.
local digests = require "unit.trace.digests.lib_digests"
local file = require "core.file"
local lib = require "unit.trace.lib"
local luaunit = require "luaunit"

local data = os.getenv("GENTABLES_DATA")
if not data then require "skip" "GENTABLES_DATA is not set" end

local TestReal = {}

local run, kept, x = lib.work .. "/run", lib.work .. "/kept", lib.work .. "/x"

-- Ranks of several runs, so that there are notes, too.
local names = { "sampled_rank-0", "sampled_rank-1", "b200_eager_rank0of8", "mi300_resnet_rank0of8",
  "h800_deepseek_rank0of64" }

local function results(...)
  local found = {}
  for _, words in ipairs { { "collectives", run, "--out", x, "--csv" }, { "gemm", run, "--out", x, "--csv" },
    { "overlap", run, "--all", "--out", x }, { "report", "-b", run, "-f", "rank", "-e", "gz", "-o",
      x .. "/report.xlsx", "--csv" } } do
    table.move({ ... }, 1, select("#", ...), #words + 1, words)
    local _, _, errors = lib.run("trace", table.unpack(words))
    found[#found + 1] = errors
  end
  found.files = digests.tree(x)
  os.execute(("rm -rf '%s'"):format(x))
  return found
end

function TestReal.test_results_are_the_same_bytes()
  lib.clean()
  assert(file.make_folder(run))
  for i, name in ipairs(names) do
    os.execute(("cp '%s/traces/%s.json.gz' '%s/rank_%d.json.gz'"):format(data, name, run, i - 1))
  end
  local wanted = results()
  luaunit.assertNotNil(wanted.files["report_csvs/gpu_timelines.csv"])
  luaunit.assertNotNil(wanted.files["gemm_csvs/GEMM.csv"])
  luaunit.assertEquals(results("--digests", kept), wanted)
  os.execute(("for trace in '%s'/*; do echo '{ no JSON' >$trace; done"):format(run))
  local count = 0
  for name in pairs(digests.tree(kept)) do
    digests.renew(kept .. "/" .. name)
    count = count + 1
  end
  luaunit.assertEquals(count, #names)
  luaunit.assertEquals(results("--digests", kept), wanted)
end

return require "suites" { { "TestReal", TestReal } }
