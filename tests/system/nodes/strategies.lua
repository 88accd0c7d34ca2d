-- Ranks on two nodes: every strategy that runs there is right, strategies of one node are refused, and so are
-- nodes with different numbers of ranks.
local lu = require "luaunit"
local lib = require "system.nodes.lib"
local lists = require "lists.lists"

local bench = os.getenv("BENCH")
local SHAPES = { { 3, 80 }, { 37, 4096 } }
local TIMEOUT = 120 -- of a rank's wait, in seconds

-- The command of a bench with `ranks` ranks on each of the nodes `nodes` (names, separated by commas).
local function bench_on(nodes, ranks, ...)
  local words = { "mpirun", "--allow-run-as-root", "--host", (nodes:gsub("[^,]+", "%0:" .. ranks)),
    "--map-by", ("ppr:%d:node"):format(ranks), "--bind-to", "none" }
  for name, value in pairs { btl = "tcp,self,vader", pml = "ob1", mpi_yield_when_idle = 1,
    coll_tuned_use_dynamic_rules = 1, coll_adapt_priority = 1, coll_han_priority = 1,
    coll_han_use_simple_allreduce = 1 } do
    table.move({ "--mca", name, tostring(value) }, 1, 3, #words + 1, words)
  end
  table.move({ bench, "--timeout", tostring(TIMEOUT), ... }, 1, 3 + select("#", ...), #words + 1, words)
  return words
end

-- Requests of an allreduce for each fusion and shape, in turn with each data type, and one of each other op.
local function requests()
  local lines, dtypes = {}, lists.names("dtypes")
  local function ask(words)
    lines[#lines + 1] = ("measure id=%d dtype=%s min_samples=2 max_samples=2 budget_us=1 seed=%d %s"):format(
      #lines + 1, dtypes[#lines % #dtypes + 1], #lines + 1, words)
  end
  for _, fusion in ipairs(lists.names("fusions")) do
    for _, shape in ipairs(SHAPES) do
      ask(("op=allreduce fusion=%s num_tokens=%d hidden_size=%d"):format(fusion, shape[1], shape[2]))
    end
  end
  for _, op in ipairs { "allgather", "reducescatter", "alltoall", "alltoallv", "broadcast" } do
    ask(("op=%s count=%d%s"):format(op, 960, op == "alltoallv" and " splits=2:1" or ""))
  end
  return lines
end

-- The lines that a bench answers to these requests.
local function answers(folder, asked, command)
  lib.write(folder .. "/requests", table.concat(asked, "\n") .. "\n")
  local quoted = {}
  for i, word in ipairs(command) do quoted[i] = "'" .. word .. "'" end
  local out = lib.ends(0, "",
    lib.run { "sh", "-c", table.concat(quoted, " ") .. " <'" .. folder .. "/requests'" })
  return out
end

local TestStrategies = lib.with_folder(lib.new_folder)

-- Checks the answers of ranks on two nodes.
function TestStrategies:expect(ranks)
  local asked = requests()
  local out = answers(self.folder, asked, bench_on("node1,node2", ranks, "--serve"))
  lu.assertStrContains(out, ("hello world_size=%d nodes=2 ranks_per_node=%d "):format(2 * ranks, ranks))
  lu.assertEquals(select(2, out:gsub("\ndone ", "")), #asked, out)
  lu.assertNil(out:match("[^\n]*wrong result[^\n]*") or out:match("[^\n]*differ in the bits[^\n]*"))
  lu.assertNil(out:match("[^\n]*skew_us[^\n]*"))
  lu.assertNil(out:match("\nnone [^\n]*"))
  for _, row in ipairs(lists.strategies) do
    if row.backend == "host" and not row.optional then
      local status = lists.spans(row, 2) and "available" or "unavailable reason=ranks on several nodes"
      lu.assertStrContains(out, ("\nstrategy name=%s status=%s\n"):format(row.name, status))
      local _, count = out:gsub(("\nrow id=%%d+ strategy=%s "):format(row.name), "")
      lu.assertEquals(count > 0, lists.spans(row, 2), row.name)
    end
  end
end

function TestStrategies:test_one_rank_on_each_node() self:expect(1) end

function TestStrategies:test_two_ranks_on_each_node() self:expect(2) end

function TestStrategies:test_plugins_get_no_memory_that_nodes_do_not_share()
  local ask = "measure id=1 dtype=float32 count=64 min_samples=1 max_samples=1 budget_us=1 strategies=MPI"
  local out = answers(self.folder, { ask },
    bench_on("node1,node2", 1, "--serve", "--plugin", os.getenv("PLUGIN")))
  lu.assertStrContains(out, "\nstrategy name=CHUNKED_8192 status=unavailable reason=its init failed: no "
    .. "memory\n")
  lu.assertStrContains(out, "\nrow id=1 strategy=MPI ")
end

function TestStrategies.test_uneven_nodes_are_refused_in_one_line()
  local command = bench_on("node1,node2", 1)
  command[4], command[6] = "node1:2,node2:1", "slot"
  local _, err = lib.ends(2, "", lib.run(command))
  lu.assertEquals(select(2, err:gsub("gentables%-bench: ", "")), 1, err)
  lu.assertStrContains(err, "gentables-bench: the nodes of ranks 0 and 2 have 2 and 1 ranks; start the same "
    .. "number on every node\n")
  lib.leaves_nothing("uneven nodes")
end

return require "suites" { { "TestStrategies", TestStrategies } }
