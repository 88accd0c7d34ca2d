-- gentables sweep over several nodes, with a stand-in bench that reports as many nodes as its launcher gives
-- it: files, provenance, skipped combinations, options, and hosts.
local lu = require "luaunit"
local file = require "core.file"
local lib = require "unit.sweep.lib"
local provenance = require "rows.provenance"
local rows = require "core.rows"

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
    "--nodes", "1,2", "--tp", "2")
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

-- ---- the bench --------------------------------------------------------------------------------

function TestNodes:test_another_placement_than_wanted_is_refused()
  local _, err = lib.ends(1, "", self:sweep("env RANKS={ranks} NODES=1", "--nodes", "2", "--tp", "4"))
  lu.assertStrMatches(err, "gentables: TP 4 on 2 nodes: the launcher placed 4 ranks on 1 node, not on 2; "
    .. "[^\n]*\n")
  lu.assertEquals(self:placements(), "")
end

return require "suites" { { "TestNodes", TestNodes } }
