-- Shared by the tests of the bench on nodes: starts it by mpirun, and checks that every strategy that spans
-- nodes is right.
local lu = require "luaunit"
local lib = require "system.nodes.lib"
local lists = require "lists.lists"

local bench_lib = {}

local bench = os.getenv("BENCH")
local TIMEOUT = 120 -- of a rank's wait, in seconds

-- The command of a bench with `ranks` ranks on each of the nodes `nodes` (names, separated by commas).
function bench_lib.bench_on(nodes, ranks, ...)
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

-- Requests of an allreduce for each fusion and shape ({ num_tokens, hidden_size }...), in turn with each data
-- type, and one of `count` elements for each other op.
function bench_lib.requests(shapes, count)
  local lines, dtypes = {}, lists.names("dtypes")
  local function ask(words)
    lines[#lines + 1] = ("measure id=%d dtype=%s min_samples=2 max_samples=2 budget_us=1 seed=%d %s"):format(
      #lines + 1, dtypes[#lines % #dtypes + 1], #lines + 1, words)
  end
  for _, fusion in ipairs(lists.names("fusions")) do
    for _, shape in ipairs(shapes) do
      ask(("op=allreduce fusion=%s num_tokens=%d hidden_size=%d"):format(fusion, shape[1], shape[2]))
    end
  end
  for _, op in ipairs { "allgather", "reducescatter", "alltoall", "alltoallv", "broadcast" } do
    ask(("op=%s count=%d%s"):format(op, count, op == "alltoallv" and " splits=2:1" or ""))
  end
  return lines
end

-- The lines that a bench answers to these requests.
function bench_lib.answers(folder, asked, command)
  lib.write(folder .. "/requests", table.concat(asked, "\n") .. "\n")
  local quoted = {}
  for i, word in ipairs(command) do quoted[i] = "'" .. word .. "'" end
  local out = lib.ends(0, "",
    lib.run { "sh", "-c", table.concat(quoted, " ") .. " <'" .. folder .. "/requests'" })
  return out
end

-- Checks the answers of `ranks` ranks on each of `nodes` nodes, node1 and so on.
function bench_lib.expect(folder, asked, nodes, ranks)
  local names = {}
  for i = 1, nodes do names[i] = "node" .. i end
  local command = bench_lib.bench_on(table.concat(names, ","), ranks, "--serve")
  local out = bench_lib.answers(folder, asked, command)
  lu.assertStrContains(out, ("hello world_size=%d nodes=%d ranks_per_node=%d "):format(nodes * ranks, nodes,
    ranks))
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

return bench_lib
