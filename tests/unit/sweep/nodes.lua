-- gentables sweep over several nodes, with a stand-in bench that reports as many nodes as its launcher gives
-- it: files, provenance, skipped combinations, options, and hosts.
local lu = require "luaunit"
local file = require "core.file"
local lib = require "unit.sweep.lib"
local provenance = require "rows.provenance"
local rows = require "core.rows"
local screening = require "sweep.screening"
local concurrent_groups = require "sweep.concurrent_groups"

local spec = [[
return { arch = "host", tp = { 2, 4, 6 }, nodes = { 1, 2, 4 }, fusions = { "NONE" }, hidden_sizes = { 64 },
  num_tokens = { 4, 8 }, strategies = { "MPI" }, limits = { launches = 1 } }
]]

local LAUNCHER = "env RANKS={ranks} NODES={nodes}"

local TestNodes = {}

function TestNodes:setUp()
  self.folder = lib.scratch("/tmp") -- it has programs
  lib.write(self.folder .. "/spec.lua", spec)
  lib.write(self.folder .. "/hosts", "secret1\nsecret2\nsecret3\n")
end

function TestNodes:tearDown() lib.clean(self.folder) end

-- Sweeps; returns how it ended, stdout, stderr.
function TestNodes:sweep(launcher, ...)
  local options = launcher and { "--launcher", launcher, ... } or { ... }
  return lib.run({ lib.gentables, "sweep", "--out", self.folder, "--bench", lib.stand_in, "--exhaustive",
    table.unpack(options) }, { "SLURM_JOB_NODELIST=" })
end

-- Sweeps and expects success; returns stdout.
function TestNodes:sweep_well(...)
  local out, err = lib.ends(0, "", self:sweep(...))
  lu.assertEquals(err, "")
  return out
end

-- Expects an error of the user in one line that matches.
function TestNodes:is_refused(pattern, ...)
  local _, err = lib.ends(2, "", self:sweep(...))
  lu.assertStrMatches(err, "gentables: [^\n]*" .. pattern .. "[^\n]*\n")
end

-- The placements that have files of rows, as the parts of their names.
function TestNodes:placements()
  local found = {}
  for _, name in ipairs(assert(file.list(self.folder))) do
    found[#found + 1] = name:match("^benchmark%.(.*)%.host%.csv$")
  end
  table.sort(found)
  return table.concat(found, " ")
end

function TestNodes:test_each_placement_has_a_file()
  local out = self:sweep_well(LAUNCHER)
  lu.assertEquals(self:placements(), "tp2 tp2.nodes2 tp4 tp4.nodes2 tp4.nodes4 tp6 tp6.nodes2")
  lu.assertStrContains(out, "TP 2 on 4 nodes: skipped: 2 ranks do not divide among 4 nodes\n")
  lu.assertStrContains(out, "TP 6 on 4 nodes: skipped: 6 ranks do not divide among 4 nodes\n")
  lu.assertStrContains(out, "TP 4 on 2 nodes: 2 of 2 cells to measure\n")
  local row = assert(rows.records(self.folder .. "/benchmark.tp4.nodes2.host.csv"))[1]
  lu.assertEquals({ row.world_size, row.nodes, row.ranks_per_node }, { 4, 2, 2 })
  lu.assertNotStrContains(lib.read(self.folder .. "/benchmark.tp4.host.csv"), "nodes")
end

function TestNodes:test_a_finished_sweep_measures_nothing()
  self:sweep_well(LAUNCHER)
  local out = self:sweep_well(LAUNCHER)
  lu.assertEquals(select(2, out:gsub("up to date, 2 rows", "")), 7)
end

function TestNodes:test_options_select_placements()
  local out = self:sweep_well(LAUNCHER, "--nodes", "2,4", "--tp", "4,6")
  lu.assertEquals(self:placements(), "tp4.nodes2 tp4.nodes4 tp6.nodes2")
  lu.assertNotStrContains(out, "TP 2")
  self:is_refused("%-%-nodes: 3 is no number of nodes of the spec, which has 1, 2, 4", LAUNCHER, "--nodes",
    "3")
  self:is_refused("%-%-tp and %-%-nodes select no placement", LAUNCHER, "--nodes", "4", "--tp", "6")
end

function TestNodes:test_ranks_per_node_select_combinations()
  lib.write(self.folder .. "/spec.lua", (spec:gsub("nodes = ", "ranks_per_node = 2, nodes = ")))
  local out = self:sweep_well(LAUNCHER)
  lu.assertEquals(self:placements(), "tp2 tp4.nodes2")
  lu.assertStrContains(out, "TP 4 on 1 node: skipped: 1 node with ranks_per_node = 2 has 2 ranks\n")
end

function TestNodes:test_predictions_are_printed_and_measure_nothing()
  local function sweeps(predict)
    local keys = "tp = { 4, 6, 8 }, nodes = { 2, 3, 4 }, ranks_per_node = 2, predict = { %s }, fusions"
    lib.write(self.folder .. "/spec.lua", (spec:gsub("tp = .- fusions", keys:format(predict))))
    return lib.ends(0, "", self:sweep(LAUNCHER))
  end
  local _, err = sweeps "6"
  lu.assertStrContains(err, "TP 12 on 6 nodes bfloat16 NONE: 2 of 2 shapes predicted from fewer nodes")
  lu.assertStrContains(err, "Held out: TP 8 on 4 nodes predicted from 2, 3 nodes: mean regret")
  local out, other = sweeps "6, 8"
  lu.assertEquals(select(2, out:gsub("up to date, 2 rows", "")), 3)
  lu.assertStrContains(other, "TP 16 on 8 nodes")
  local recorded = provenance.read(self.folder .. "/benchmark.tp4.nodes2.host.json")
  lu.assertEquals(recorded.spec.keys.predict, { 6, 8 })
end

-- ---- hosts ------------------------------------------------------------------------------------

function TestNodes:test_hosts_go_to_the_launcher_and_to_no_file()
  local script = self.folder .. "/launch.sh"
  lib.write(script, ('#!/bin/sh\necho "$1" >>%s/used\nshift\nexec "$@"\n'):format(self.folder))
  self:sweep_well(("sh %s {hosts} %s"):format(script, LAUNCHER), "--hostfile", self.folder .. "/hosts",
    "--nodes", "1,2", "--tp", "2", "--no-screening")
  lu.assertEquals(lib.read(self.folder .. "/used"), "secret1\nsecret1,secret2\n")
  for _, name in ipairs(assert(file.list(self.folder))) do
    local has_rows = name:find("^benchmark") ~= nil
    if has_rows then lu.assertNotStrContains(lib.read(self.folder .. "/" .. name), "secret") end
  end
end

function TestNodes:test_provenance_has_the_network_and_a_hash_of_the_nodes()
  local json = self.folder .. "/benchmark.tp2.nodes2.host.json"
  local function network_of(names)
    lib.write(self.folder .. "/hosts", names)
    self:sweep_well(LAUNCHER, "--hostfile", self.folder .. "/hosts", "--nodes", "1,2", "--tp", "2", "--fresh")
    return provenance.read(json).network
  end
  local one = network_of("a\nb\n")
  lu.assertEquals(type(one.interfaces), "table")
  lu.assertStrMatches(one.node_set, "%x+")
  lu.assertEquals(network_of("b\na\n").node_set, one.node_set)
  lu.assertNotEquals(network_of("a\nc\n").node_set, one.node_set)
  lu.assertNil(provenance.read(self.folder .. "/benchmark.tp2.host.json").network)
end

function TestNodes:test_hosts_that_are_too_few_or_unknown()
  self:is_refused("hosts has 3 hosts, and the spec has 4 nodes; %-%-nodes ", LAUNCHER, "--hostfile",
    self.folder .. "/hosts")
  self:is_refused("no hosts are known for 4 nodes; give %-%-hostfile ", nil)
  self:is_refused("%-%-transport takes no %-%-hostfile", nil, "--transport", "--hostfile", "x")
end

-- Sweeps two nodes in an allocation that lasts this long, as squeue prints it.
function TestNodes:sweep_in_allocation(time, ...)
  for name, lines in pairs { scontrol = "echo a; echo b", squeue = "echo " .. time } do
    lib.write(self.folder .. "/" .. name, "#!/bin/sh\n" .. lines .. "\n")
    assert(os.execute(("chmod +x '%s/%s'"):format(self.folder, name)))
  end
  return lib.sweep_by(LAUNCHER, self.folder, { "SLURM_JOB_ID=7", "SLURM_JOB_NODELIST=x",
    ("PATH=%s:/usr/bin:/bin"):format(self.folder) }, "--nodes", "2", "--tp", "2", ...)
end

function TestNodes:test_a_sweep_ends_before_its_allocation()
  lu.assertStrContains(lib.ends(0, "", self:sweep_in_allocation("1:15")),
    "budget: 45 s, because the allocation ends in 75 s\n")
  lu.assertNotStrContains(lib.ends(0, "", self:sweep_in_allocation("5:00", "--fresh")), "budget:")
  local _, message = lib.ends(2, "", self:sweep_in_allocation("0:20", "--fresh"))
  lu.assertStrMatches(message,
    "gentables: the allocation's time of 0 is too small for one sample per cell; [^\n]*\n")
end

-- The seconds that the first request at each number of nodes has left.
function TestNodes:seconds_of(...)
  local log = self.folder .. "/log"
  os.remove(log)
  local ended, _, err = lib.run({ lib.gentables, "sweep", "--out", self.folder, "--bench", lib.stand_in,
    "--launcher", LAUNCHER, "--tp", "4", "--fresh", ... }, { "SLURM_JOB_NODELIST=", "STAND_IN_LOG=" .. log })
  lu.assertEquals(ended, "exit code 0", err)
  local left = {}
  for us in lib.read(log):gmatch("pid %d+\nmeasure [^\n]* left_us=(%d+) ") do left[#left + 1] = us / 1e6 end
  return left
end

-- Each number of nodes gets the same node-seconds of those that remain: 1, 2 and 4 nodes of 300.
function TestNodes:test_a_budget_of_node_seconds()
  local left = self:seconds_of("--budget-node-seconds", "300")
  lu.assertEquals(#left, 3)
  for i, most in ipairs { 98, 147 / 2, 294 / 4 } do
    lu.assertTrue(left[i] > 0.8 * most and left[i] < most, i .. ": " .. left[i])
  end
  self:is_refused("%-%-budget%-node%-seconds 3 is too small for one sample per cell; about %d+ node%-seconds",
    LAUNCHER, "--budget-node-seconds", "3")
  self:is_refused("two budgets; give one", LAUNCHER, "--budget-node-seconds", "300", "--budget", "60")
end

-- ---- slow nodes -------------------------------------------------------------------------------

function TestNodes.test_each_two_nodes_meet_once()
  for count = 3, 9 do
    local met, pairs_met = {}, 0
    for round = 1, count - 1 + count % 2 do
      local busy = {}
      for _, pair in ipairs(screening.pairs_of(count, round)) do
        for _, node in ipairs(pair) do
          lu.assertNil(busy[node])
          busy[node] = true
        end
        local key = table.concat(pair, " ")
        lu.assertNil(met[key])
        met[key], pairs_met = true, pairs_met + 1
      end
    end
    lu.assertEquals(pairs_met, count * (count - 1) // 2)
  end
end

-- Node 3 is slow in the large size alone; node 4 has no pair.
function TestNodes.test_a_node_is_as_slow_as_its_best_pair()
  local ratios = screening.ratios { { { 10, 11 }, { 100, 320 } }, { { 10, 11 }, { 100, 310 } },
    { { 11, 11 }, { 320, 310 } }, { {}, {} } }
  lu.assertEquals(ratios, { 1, 1, 3.1, false })
end

-- Sweeps four hosts with a launcher that runs `lines` with the hosts of a launch as $1; returns stdout and
-- the hosts of each launch after the screening.
function TestNodes:sweep_hosts(lines, ...)
  local script = self.folder .. "/launch.sh"
  lib.write(self.folder .. "/hosts", "secret1\nsecret2\nsecret3\nsecret4\n")
  lib.write(script, ('#!/bin/sh\necho "$1" >>%s/used\n%s\nshift\nexec "$@"\n'):format(self.folder, lines))
  os.remove(self.folder .. "/used")
  local ended, out, err = self:sweep(("sh %s {hosts} %s"):format(script, LAUNCHER), "--hostfile",
    self.folder .. "/hosts", ...)
  lu.assertEquals(ended, "exit code 0", err)
  local used = {}
  for line in lib.read(self.folder .. "/used"):gmatch("[^\n]+") do used[#used + 1] = line end
  local pairs_first = 7 -- of four nodes, and the slow one again
  return out, table.move(used, pairs_first + 1, #used, 1, {}), err
end

local SLOW_FIRST = 'case $1 in *secret1*) export STAND_IN_SLOWER=8 ;; esac'

function TestNodes:test_a_slow_node_is_named_and_left_out()
  local out, used = self:sweep_hosts(SLOW_FIRST, "--tp", "4", "--nodes", "1,2")
  lu.assertStrContains(out, "node secret1: 8.0 times as slow as others; left out\n")
  lu.assertEquals(used, { "secret2", "secret2,secret3" })
  lu.assertNil(provenance.read(self.folder .. "/benchmark.tp4.nodes2.host.json").network.slow_nodes)
end

function TestNodes:test_a_slow_node_that_is_needed_is_labelled()
  local out, used = self:sweep_hosts(SLOW_FIRST, "--tp", "4")
  lu.assertStrContains(out, "node secret1: 8.0 times as slow as others; "
    .. "placements on more than 3 nodes have it\n")
  lu.assertEquals(used, { "secret2", "secret2,secret3", "secret2,secret3,secret4,secret1" })
  lu.assertNil(provenance.read(self.folder .. "/benchmark.tp4.nodes2.host.json").network.slow_nodes)
  lu.assertEquals(provenance.read(self.folder .. "/benchmark.tp4.nodes4.host.json").network.slow_nodes, 1)
end

-- Two of its three pairs are tried, each once.
function TestNodes:test_a_node_that_does_not_start_is_left_out()
  local out, used, err = self:sweep_hosts('case $1 in *secret2*) exit 7 ;; esac', "--tp", "4", "--nodes", "2")
  lu.assertStrMatches(err, "gentables: nodes secret%d and secret%d: the bench died: exit code 7\n"
    .. "gentables: nodes secret%d and secret%d: the bench died: exit code 7\n")
  lu.assertStrContains(out, "node secret2: no pair with it starts; left out\n")
  lu.assertEquals(used, {}) -- two pairs less
  lu.assertEquals(lib.read(self.folder .. "/used"):match("([^\n]*)\n$"), "secret1,secret3")
end

function TestNodes:test_nodes_as_they_come()
  self:sweep_hosts(SLOW_FIRST, "--tp", "4", "--nodes", "2", "--no-screening")
  lu.assertEquals(lib.read(self.folder .. "/used"), "secret1,secret2\n")
end

-- ---- groups side by side ----------------------------------------------------------------------

function TestNodes.test_an_a_a_check_finds_groups_that_disturb_each_other()
  local may, words = concurrent_groups.agree { { 10, 100 }, { 10.1, 102 }, { 10.2, 101 }, { 10.1, 101 } }
  lu.assertEquals({ may, words }, { true, "times beside another group are 1.01 times those alone" })
  may, words = concurrent_groups.agree { { 10, 100 }, { 10.1, 112 }, { 10.2, 111 }, { 10.1, 101 } }
  lu.assertEquals({ may, words }, { false, "times beside another group are 1.11 times those alone" })
  lu.assertFalse((concurrent_groups.agree { {}, {}, {}, {} }))
  may, words = concurrent_groups.agree { { 10, 100 }, { 10.1, 102 }, { 10.2, 101 }, { 12, 101 } }
  lu.assertEquals({ may, words }, { false, "times alone differ by a factor of 1.20" })
end

-- The nodes of each two starts, of which either may be the first.
function TestNodes:starts_by_pairs()
  local pairs_of_starts, of_two = {}, {}
  for hosts in lib.read(self.folder .. "/used"):gmatch("[^\n]+") do
    of_two[#of_two + 1] = hosts
    if #of_two == 2 then
      table.sort(of_two)
      pairs_of_starts[#pairs_of_starts + 1], of_two = table.concat(of_two, " "), {}
    end
  end
  pairs_of_starts[#pairs_of_starts + 1] = of_two[1]
  return pairs_of_starts
end

-- Two placements on one node each, then two on two nodes each; the fifth is alone. Two checks come first.
function TestNodes:test_placements_on_few_nodes_are_measured_at_once()
  lib.write(self.folder .. "/spec.lua", (spec:gsub("tp = { 2, 4, 6 }", "tp = { 2, 4 }")))
  local out = self:sweep_hosts("", "--no-screening")
  lu.assertStrContains(out, "1 node: times beside another group are 1.00 times those alone; "
    .. "up to 4 groups at once\n")
  lu.assertStrContains(out, "2 nodes: times beside another group are 1.00 times those alone; up to 2 groups "
    .. "at once\n")
  lu.assertEquals(self:placements(), "tp2 tp2.nodes2 tp4 tp4.nodes2 tp4.nodes4")
  lu.assertEquals(self:starts_by_pairs(), { "secret1 secret2", "secret1,secret2 secret3,secret4",
    "secret1 secret2", "secret1,secret2 secret3,secret4", "secret1,secret2,secret3,secret4" })
  local function beside(name) return provenance.read(self.folder .. "/benchmark." .. name).beside end
  lu.assertEquals({ beside "tp2.host.json", beside "tp4.nodes2.host.json", beside "tp4.nodes4.host.json" },
    { 2, 2, nil })
  for _, name in ipairs { "tp2", "tp4", "tp4.nodes2" } do
    lu.assertEquals(#assert(rows.records(("%s/benchmark.%s.host.csv"):format(self.folder, name))), 2)
  end
end

-- If a bench dies in the check, the other one is ended before anything is measured; then each placement has
-- its turn.
function TestNodes:test_a_failed_check_leaves_nothing_running()
  lib.write(self.folder .. "/spec.lua", (spec:gsub("tp = { 2, 4, 6 }", "tp = { 2, 4 }")))
  for _, host in ipairs { "secret1", "secret2" } do
    local out = self:sweep_hosts(([[
      case $1 in %s) [ -e "$0.%s" ] || { : >"$0.%s"; export STAND_IN_FAULT=die; } ;; esac
      host=$1; shift; "$@"; code=$?
      echo "end $host" >>"${0%%/*}/used"; exit $code]]):format(host, host, host),
      "--nodes", "1", "--no-screening", "--fresh")
    lu.assertStrMatches(out, ".*1 node: the bench died: [^\n]*; one group after another\n.*")
    local order = {}
    for line in lib.read(self.folder .. "/used"):gmatch("[^\n]+") do
      order[#order + 1] = line:find("^end") and "end" or "start"
    end
    lu.assertEquals(table.concat(order, " "), "start start end end start end start end")
  end
end

-- The first start of the second group fails; the first group goes on meanwhile.
function TestNodes:test_a_group_that_fails_starts_again()
  lib.write(self.folder .. "/spec.lua", (spec:gsub("tp = { 2, 4, 6 }", "tp = { 2, 4 }")))
  local script = 'case $1$3 in secret2RANKS=4) [ -e "$0.failed" ] || { : >"$0.failed"; exit 7; } ;; esac'
  local _, _, err = self:sweep_hosts(script, "--nodes", "1", "--no-screening")
  lu.assertEquals(err, "gentables: TP 4: the bench died: exit code 7; the bench is started again\n")
  lu.assertEquals(self:placements(), "tp2 tp4")
end

-- ---- the network --------------------------------------------------------------------------------

-- Changes the recorded network of rows, as if they had been measured over it.
function TestNodes:record_network(placement, fabric)
  local csv = ("%s/benchmark.%s.host.csv"):format(self.folder, placement)
  local record = assert(provenance.read(provenance.path_of(csv)))
  record.machine.fabric = fabric
  record.fingerprint = provenance.hash(record.fingerprint .. fabric)
  assert(provenance.write(csv, lib.read(csv), record))
end

function TestNodes:generate()
  return lib.run { lib.gentables, "generate", "--data-dir", self.folder, "--arch", "host", "--formats",
    "table", "--out", self.folder .. "/tables" }
end

function TestNodes:test_rows_over_another_network_are_of_another_machine()
  lib.write(self.folder .. "/spec.lua", (spec:gsub("{ 2, 4, 6 }", "{ 4 }")))
  self:sweep_well(LAUNCHER)
  self:record_network("tp4.nodes2", "eth0, 100 Mbit/s")
  self:record_network("tp4.nodes4", "eth0, 100 Mbit/s")
  lib.ends(0, "", self:generate())
  self:record_network("tp4.nodes4", "eth0, 1000 Mbit/s")
  local _, err = lib.ends(2, "", self:generate())
  lu.assertStrMatches(err, "gentables: [^\n]*tp4.nodes4.host.json: is of another machine [^\n]*; "
    .. "differences: network %(eth0, 1000 Mbit/s, there eth0, 100 Mbit/s%); [^\n]*\n")
end

function TestNodes:test_files_of_one_and_of_several_nodes_are_merged_unless_the_network_differs()
  lib.write(self.folder .. "/spec.lua", (spec:gsub("{ 2, 4, 6 }", "{ 4 }")))
  self:sweep_well(LAUNCHER)
  local function merge()
    return lib.run { lib.gentables, "merge", "--out", self.folder .. "/merged",
      self.folder .. "/benchmark.tp4.host.csv", self.folder .. "/benchmark.tp4.nodes2.host.csv",
      self.folder .. "/benchmark.tp4.nodes4.host.csv" }
  end
  lib.ends(0, "", merge())
  self:record_network("tp4.nodes2", "eth0, 100 Mbit/s")
  self:record_network("tp4.nodes4", "eth0, 1000 Mbit/s")
  local _, err = lib.ends(2, "", merge())
  lu.assertStrMatches(err, "gentables: [^\n]*tp4.nodes4.host.csv: [^\n]*which differs in network [^\n]*\n")
end

-- ---- many ranks -----------------------------------------------------------------------------------

function TestNodes:test_many_ranks_are_measured_and_predicted()
  local keys = "tp = { 20, 32, 64, 128 }, nodes = { 4, 8, 16 }, ranks_per_node = 8, predict = { 64 }, fusions"
  lib.write(self.folder .. "/spec.lua", (spec:gsub("tp = .- fusions", keys)))
  local _, err = lib.ends(0, "", self:sweep(LAUNCHER))
  lu.assertEquals(self:placements(), "tp128.nodes16 tp32.nodes4 tp64.nodes8")
  lu.assertStrContains(err, "TP 512 on 64 nodes bfloat16 NONE: 2 of 2 shapes")
  lib.ends(0, "", lib.run { lib.gentables, "generate", "--data-dir", self.folder, "--arch", "host",
    "--out", self.folder .. "/tables" })
  local header = lib.read(self.folder .. "/tables/allreduce_table.h")
  for _, condition in ipairs { "nodes == 8 && tp_size == 64", "nodes == 64 && tp_size == 512" } do
    lu.assertStrContains(header, condition)
  end
  lib.ends(0, "", lib.run { lib.gentables, "report", "--data-dir", self.folder, "--arch", "host",
    "--out", self.folder .. "/report" })
end

function TestNodes:test_too_many_ranks_end_in_one_line()
  lib.write(self.folder .. "/spec.lua", (spec:gsub("{ 2, 4, 6 }", "{ 2, 1024 }")))
  self:is_refused("spec.lua:1: tp has 1024; valid are whole numbers from 2 to 512", LAUNCHER)
  lib.write(self.folder .. "/spec.lua", (spec:gsub("tp = .- fusions", "tp = { 17 }, fusions")))
  self:is_refused("spec.lua:1: tp has 17; one node has 16 ranks at most, and more need nodes = { ... }",
    LAUNCHER)
end

-- ---- the bench --------------------------------------------------------------------------------

function TestNodes:test_another_placement_than_wanted_is_refused()
  local _, err = lib.ends(1, "", self:sweep("env RANKS={ranks} NODES=1", "--nodes", "2", "--tp", "4"))
  lu.assertStrMatches(err, "gentables: TP 4 on 2 nodes: the launcher placed 4 ranks on 1 node, not on 2; "
    .. "[^\n]*\n")
  lu.assertEquals(self:placements(), "")
end

return require "suites" { { "TestNodes", TestNodes } }
