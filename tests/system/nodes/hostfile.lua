-- Sweeps and tunes over two nodes by Open MPI's mpirun with a host file.
local lu = require "luaunit"
local lib = require "system.nodes.lib"
local rows = require "core.rows"

local TestHostfile = lib.with_folder(lib.new_folder, "1, 2")

function TestHostfile:test_a_sweep_over_nodes()
  local command = lib.sweep_command(self.folder, "--hostfile", lib.hosts)
  lib.ends(0, "", lib.run(command))
  for nodes = 1, 2 do
    local records = assert(rows.records(lib.rows_of(self.folder, nodes)))
    lu.assertEquals(#records, 2)
    lu.assertEquals(records[1].nodes, nodes > 1 and nodes or nil)
  end
  lib.leaves_nothing("a sweep")
  local _, out = lib.run(command)
  lu.assertEquals(select(2, out:gsub("up to date, 2 rows", "")), 2)
end

function TestHostfile:test_ranks_on_more_nodes_than_wanted_end_in_one_line()
  local ended, _, err = lib.run(lib.sweep_command(self.folder, "--nodes", "1", "--launcher",
    ("mpirun --allow-run-as-root --hostfile %s --map-by ppr:1:node -n {ranks}"):format(lib.hosts)))
  lu.assertEquals(err, "gentables: TP 2: the launcher placed 2 ranks on 2 nodes, not on 1; --launcher can "
    .. "place them by {nodes}, {ranks_per_node} and {hosts}\n")
  lu.assertEquals(ended, "exit code 1")
  lib.leaves_nothing("ranks on more nodes")
end

local SPEED = "/sys/class/net/fabric0/speed"

-- Makes an interface of the head node, beside those of the bridge, and returns a function that sets the rate
-- that it reports.
local function make_interface(folder)
  local path = folder .. "/speed"
  local function report(mbit_per_s)
    local handle <close> = assert(io.open(path, "w"))
    assert(handle:write(mbit_per_s, "\n"))
  end
  report(100)
  assert(os.execute(("ip link add fabric0 type veth peer name fabric1 && ip link set fabric1 up "
    .. "&& ip link set fabric0 up && mount --bind %s %s"):format(path, SPEED)))
  return report
end

function TestHostfile:test_rows_over_another_rate_are_measured_again()
  local report_rate = make_interface(self.folder)
  local command = lib.sweep_command(self.folder, "--hostfile", lib.hosts)
  lib.ends(0, "", lib.run(command))
  local _, same = lib.run(command)
  lu.assertEquals(select(2, same:gsub("up to date, 2 rows", "")), 2)
  report_rate(1000)
  local out = lib.ends(0, "", lib.run(command))
  lu.assertStrMatches(out, ".*tp2%.nodes2%.host%.csv: replaces the rows of [^\n]*; this machine differs in "
    .. "network %(fabric0, 100 Mbit/s; [^\n]*, here fabric0, 1000 Mbit/s; [^\n]*%)\n.*")
  lu.assertStrContains(out, "/benchmark.tp2.host.csv: up to date, 2 rows")
  assert(os.execute(("umount %s && ip link del fabric0"):format(SPEED)))
end

-- Tunes two ranks on these nodes; returns how it ended, stdout, stderr.
function TestHostfile:tune(nodes, ...)
  return lib.run { lib.gentables, "tune", "--nodes", nodes, "--sizes", "1K", "--samples", "5", "--cache",
    self.folder .. "/cache", "--out", self.folder, ... }
end

-- The choices of the module, for one node and for two: of the first nothing was measured.
local CHOICES = [[
import gentables_tuned as tuned
print(tuned.choose("allreduce", 1024, 2, "bfloat16", 2), tuned.choose("allreduce", 1024, 2, "bfloat16"))]]

function TestHostfile:test_a_collective_is_tuned_over_nodes()
  local ended, out, err = self:tune("2", "--op", "allgather,allreduce", "--hostfile", lib.hosts,
    "--launches", "2", "--default", "MPI", "--strategies", "MPI,MPI_RING,TWOLEVEL,ONESHOT")
  lu.assertEquals(ended, "exit code 0", err)
  lu.assertStrMatches(out, "allgather, TP 2 on 2 nodes, bfloat16\n  1 KiB +MPI.*\n"
    .. "allreduce, TP 2 on 2 nodes, bfloat16\n  1 KiB .*no time: ONESHOT: ranks on several nodes.*")
  local records = assert(rows.records(lib.rows_of(self.folder, 2)))
  lu.assertEquals({ records[1].nodes, records[1].ranks_per_node }, { 2, 1 })
  local chosen = out:match("allreduce,.-1 KiB +(%S+)")
  local ran, printed = lib.run { "env", "PYTHONPATH=" .. self.folder, "python3", "-c", CHOICES }
  lu.assertEquals({ ran, printed }, { "exit code 0", chosen .. " MPI" })
  lib.leaves_nothing("tune")
end

-- The head node, on which gentables runs, is none of the hosts.
function TestHostfile:test_one_node_of_a_host_file_is_tuned()
  local ended, out, err = self:tune("1", "--op", "broadcast", "--hostfile", lib.hosts)
  lu.assertEquals(ended, "exit code 0", err)
  lu.assertStrMatches(out, "broadcast, TP 2, bfloat16\n.*")
  local failed, _, message = self:tune("1", "--op", "broadcast", "--fresh", "--hostfile",
    lib.host_file(self.folder, "node9"))
  lu.assertEquals(failed, "exit code 1")
  lu.assertStrContains(message, "mpirun cannot reach all nodes: ")
  lu.assertStrContains(message, "node9")
  lu.assertNotStrContains(lib.read(self.folder .. "/tuned.json"), "node9")
end

function TestHostfile:test_tune_is_refused_where_ranks_are_placed_otherwise()
  local _, _, err = self:tune("2", "--op", "broadcast", "--launcher",
    "mpirun --allow-run-as-root --oversubscribe -n {ranks}")
  lu.assertStrContains(err, "the group failed: agreement: the launcher placed 2 ranks on 1 node, not on 2;")
  _, _, err = self:tune("2", "--op", "broadcast", "--tp", "2,3", "--hostfile", lib.hosts)
  lu.assertStrContains(err, "gentables: --tp: 3 ranks do not divide among 2 nodes; give multiples of 2\n")
end

return require "suites" { { "TestHostfile", TestHostfile } }
