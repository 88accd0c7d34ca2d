-- More ranks than one node can have, on four nodes: every strategy that runs there is right, and a number of
-- ranks above the limit of a node is refused. Shapes are tiny: the ranks share the processors of one machine.
local lu = require "luaunit"
local bench_lib = require "system.nodes.bench_lib"
local lib = require "system.nodes.lib"

local NODES, RANKS = 4, 5

local TestManyRanks = lib.with_folder(lib.new_folder)

function TestManyRanks:test_twenty_ranks_on_four_nodes()
  local step, asked = os.getenv "GENTABLES_NIGHTLY" == "1" and 1 or 3, {}
  for i, request in ipairs(bench_lib.requests({ { 3, 80 } }, 960)) do
    if i % step == 0 or not request:find("op=allreduce", 1, true) then asked[#asked + 1] = request end
  end
  bench_lib.expect(self.folder, asked, NODES, RANKS)
end

function TestManyRanks.test_too_many_ranks_on_a_node_are_refused_in_one_line()
  local _, err = lib.ends(2, "", lib.run(bench_lib.bench_on("node1", 17)))
  lu.assertEquals(select(2, err:gsub("gentables%-bench: ", "")), 1, err)
  lu.assertStrContains(err, "gentables-bench: 17 ranks on one node; 1 to 16 are possible\n")
  lib.leaves_nothing("too many ranks")
end

return require "suites" { { "TestManyRanks", TestManyRanks } }
