-- Ranks on two nodes: every strategy that runs there is right, strategies of one node are refused, and so are
-- nodes with different numbers of ranks.
local lu = require "luaunit"
local bench_lib = require "system.nodes.bench_lib"
local lib = require "system.nodes.lib"

local SHAPES = { { 3, 80 }, { 37, 4096 } }

local TestStrategies = lib.with_folder(lib.new_folder)

function TestStrategies:expect(ranks)
  bench_lib.expect(self.folder, bench_lib.requests(SHAPES, 960), 2, ranks)
end

function TestStrategies:test_one_rank_on_each_node() self:expect(1) end

function TestStrategies:test_two_ranks_on_each_node() self:expect(2) end

function TestStrategies:test_plugins_get_no_memory_that_nodes_do_not_share()
  local ask = "measure id=1 dtype=float32 count=64 min_samples=1 max_samples=1 budget_us=1 strategies=MPI"
  local out = bench_lib.answers(self.folder, { ask },
    bench_lib.bench_on("node1,node2", 1, "--serve", "--plugin", os.getenv("PLUGIN")))
  lu.assertStrContains(out, "\nstrategy name=CHUNKED_8192 status=unavailable reason=its init failed: no "
    .. "memory\n")
  lu.assertStrContains(out, "\nrow id=1 strategy=MPI ")
end

function TestStrategies.test_uneven_nodes_are_refused_in_one_line()
  local command = bench_lib.bench_on("node1,node2", 1)
  command[4], command[6] = "node1:2,node2:1", "slot"
  local _, err = lib.ends(2, "", lib.run(command))
  lu.assertEquals(select(2, err:gsub("gentables%-bench: ", "")), 1, err)
  lu.assertStrContains(err, "gentables-bench: the nodes of ranks 0 and 2 have 2 and 1 ranks; start the same "
    .. "number on every node\n")
  lib.leaves_nothing("uneven nodes")
end

return require "suites" { { "TestStrategies", TestStrategies } }
