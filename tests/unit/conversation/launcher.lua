-- launcher: the command line that starts the ranks, for each version of MPI, with enough cores and without;
-- and which rank died, by mpirun's message. mpirun is a script that prints the output of the real one.
local file = require "core.file"
local lu = require "luaunit"
local launcher = require "conversation.launcher"
local lib = require "unit.sweep.lib"
local system = require "core.system"

local TestLauncher = lib.with_folder(lib.scratch, "/tmp")

-- The command line for `ranks` ranks on `cores` cores if mpirun prints `version`; nil: there is none. `over`:
-- the nodes, as Lua's text.
local function words(self, version, ranks, cores, text, environment, over)
  local script = ("%s/ask.lua"):format(self.folder)
  lib.write(script, ([[
    local words = require("conversation.launcher").command(%d, %d, %s, %s)
    print("<" .. table.concat(words, "> <") .. ">")
  ]]):format(ranks, cores, text and ("%q"):format(text) or "nil", over or "nil"))
  local mpirun = self.folder .. "/mpirun"
  if version then
    lib.write(mpirun, ("#!/bin/sh\necho '%s'\n"):format(version))
    assert(os.execute(("chmod +x '%s'"):format(mpirun)))
  end
  local ended, out, errors = lib.run({ lib.gentables, "lua", script },
    { "PATH=" .. self.folder .. (version and ":/usr/bin:/bin" or ""), table.unpack(environment or {}) })
  return out, ended, errors
end

local mpirun = "<env> <HWLOC_COMPONENTS=-pci,-linuxio> <PMIX_MCA_gds=hash> <mpirun>"
local as_root = system.is_root() and " <--allow-run-as-root>" or ""
local one_node = " <--mca> <pml> <ob1> <--mca> <btl> <self,vader>"
local components = " <--mca> <coll_sm_priority> <1> <--mca> <coll_tuned_use_dynamic_rules> <1>"

function TestLauncher:test_open_mpi_4_with_a_core_for_each_rank()
  lu.assertEquals(words(self, "mpirun (Open MPI) 4.1.4", 2, 2), mpirun .. " <-n> <2>" .. as_root ..
    " <--bind-to> <core>" .. one_node .. components)
end

function TestLauncher:test_open_mpi_4_with_more_ranks_than_cores()
  lu.assertEquals(words(self, "mpirun (Open MPI) 4.1.4", 4, 2), mpirun .. " <-n> <4>" .. as_root ..
    " <--oversubscribe> <--bind-to> <none>" .. one_node .. components)
end

function TestLauncher:test_open_mpi_5_calls_its_transport_sm()
  lu.assertStrContains(words(self, "mpirun (Open MPI) 5.0.3", 2, 2), "<pml> <ob1> <--mca> <btl> <self,sm>")
end

-- Open MPI 4.1 rejects a parameter that is given twice, and the command line overrides the environment.
function TestLauncher:test_the_environments_own_pml_stays()
  local found = words(self, "mpirun (Open MPI) 4.1.4", 2, 2, nil, { "OMPI_MCA_pml=ucx" })
  lu.assertNotStrContains(found, "pml")
  lu.assertStrContains(found, "<btl> <self,vader>")
end

function TestLauncher:test_what_the_environment_has_hwloc_read_stays()
  for _, setting in ipairs { "COMPONENTS=-pci", "XMLFILE=a.xml", "SYNTHETIC=core:2", "FSROOT=/a" } do
    local found = words(self, "mpirun (Open MPI) 4.1.4", 2, 2, nil, { "HWLOC_" .. setting })
    lu.assertStrMatches(found, "<env> <PMIX_MCA_gds=hash> <mpirun> .*")
  end
end

function TestLauncher:test_the_environments_own_store_of_pmix_stays()
  local found = words(self, "mpirun (Open MPI) 4.1.4", 2, 2, nil, { "PMIX_MCA_gds=ds21" })
  lu.assertStrMatches(found, "<env> <HWLOC_COMPONENTS=%-pci,%-linuxio> <mpirun> .*")
  found = words(self, "mpirun (Open MPI) 4.1.4", 2, 2, nil, { "PMIX_MCA_gds=ds21", "HWLOC_COMPONENTS=-pci" })
  lu.assertStrMatches(found, "<mpirun> .*")
end

function TestLauncher:test_another_mpi_gets_no_flags_of_open_mpi()
  lu.assertEquals(words(self, "HYDRA build details:", 4, 2), "<mpirun> <-n> <4>")
end

function TestLauncher:test_a_launcher_that_is_given_is_taken_as_it_is()
  lu.assertEquals(words(self, nil, 4, 2, "srun --mpi=pmix -n {ranks}"), "<srun> <--mpi=pmix> <-n> <4>")
end

-- refused(PATTERN, words(...)): expects exit code 2, and this on stderr.
local function refused(pattern, _, ended, errors)
  lu.assertEquals(ended, "exit code 2")
  lu.assertStrMatches(errors, pattern)
end

function TestLauncher:test_a_launcher_that_cannot_start_ranks_is_reported()
  refused("gentables: no mpirun .*\n", words(self, nil, 2, 2))
  for _, text in ipairs { "srun -n 2", " " } do
    refused("gentables: the launcher [^\n]*{ranks}[^\n]*\n", words(self, nil, 2, 2, text))
  end
end

-- ---- several nodes ----------------------------------------------------------------------------

local two_nodes = [[{ nodes = 2, ranks_per_node = 4, hosts = { "a", "b" }, hostfile = "/f" }]]
local over_nodes = components .. " <--mca> <coll_han_priority> <1> <--mca> <coll_adapt_priority> <1>" ..
  " <--mca> <coll_han_use_simple_allreduce> <1>"

function TestLauncher:test_open_mpi_over_nodes_chooses_its_transports()
  lu.assertEquals(words(self, "mpirun (Open MPI) 4.1.4", 8, 4, nil, nil, two_nodes), "<mpirun> <-n> <8>" ..
    as_root .. " <--hostfile> </f> <--host> <a:4,b:4> <--map-by> <ppr:4:node> <--bind-to> <core>" ..
    over_nodes)
end

function TestLauncher:test_open_mpi_in_an_allocation_finds_the_nodes()
  lu.assertEquals(words(self, "mpirun (Open MPI) 5.0.3", 8, 2, nil, nil, "{ nodes = 2, ranks_per_node = 4 }"),
    "<mpirun> <-n> <8>" .. as_root .. " <--map-by> <ppr:4:node> <--oversubscribe> <--bind-to> <none>" ..
    over_nodes)
end

function TestLauncher:test_the_environments_own_binding_stays()
  lu.assertEquals(words(self, "mpirun (Open MPI) 4.1.4", 8, 4, nil,
    { "OMPI_MCA_hwloc_base_binding_policy=socket" }, two_nodes), "<mpirun> <-n> <8>" ..
    as_root .. " <--hostfile> </f> <--host> <a:4,b:4> <--map-by> <ppr:4:node>" .. over_nodes)
end

function TestLauncher:test_one_node_of_several_has_the_options_of_one()
  lu.assertEquals(words(self, "mpirun (Open MPI) 4.1.4", 2, 2, nil, nil,
    [[{ nodes = 1, ranks_per_node = 2, hosts = { "a" } }]]), mpirun .. " <-n> <2>" .. as_root ..
    " <--bind-to> <core> <--host> <a:2>" .. one_node .. components)
end

function TestLauncher:test_mpich_over_nodes()
  lu.assertEquals(words(self, "HYDRA build details:", 8, 2, nil, nil, two_nodes),
    "<mpirun> <-n> <8> <-ppn> <4> <-hosts> <a,b>")
end

function TestLauncher:test_a_launcher_gets_the_nodes()
  lu.assertEquals(words(self, nil, 8, 2, "run -N {nodes} -n{ranks} --per={ranks_per_node} -w {hosts} {x}",
    nil, two_nodes), "<run> <-N> <2> <-n8> <--per=4> <-w> <a,b> <{x}>")
  lu.assertEquals(words(self, nil, 8, 2, "run {nodes} {ranks_per_node} {ranks}"), "<run> <1> <8> <8>")
end

function TestLauncher:test_a_launcher_without_the_hosts_that_it_needs()
  refused("gentables: the launcher [^\n]* no hosts are known; %-%-hostfile [^\n]*\n",
    words(self, nil, 8, 2, "run {ranks} {hosts}"))
end

function TestLauncher:test_another_mpirun_cannot_place_ranks()
  refused("gentables: mpirun is neither [^\n]* %-%-launcher [^\n]*\n",
    words(self, "intel mpi", 8, 2, nil, nil, two_nodes))
end

-- ---- who died ---------------------------------------------------------------------------------

-- In the words of Open MPI 4.1.4, with its line breaks.
function TestLauncher.test_the_dead_rank()
  local cases = {
    { "mpirun noticed that process rank 1 with PID 0 on node n\nexited on signal 9 (Killed).\n", "1",
      "rank 1 died: signal 9 (Killed)" },
    { "-----\nmpirun detected:\n\n  Process name: [[60811,1],3]\n  Exit code:    7\n---\n", "3",
      "rank 3 died: exit code 7" },
    { "Primary job  terminated normally, but 1 process returned\na non-zero exit code. Per user-direction, "
      .. "the job has been aborted.\n", nil, "one rank died; mpirun does not name it" },
    { "mpirun was unable to find the executable\n" },
  }
  for _, case in ipairs(cases) do
    lu.assertEquals({ launcher.who_died(case[1]) }, { case[2], case[3] })
  end
end

-- In the words of Open MPI 4.1.4.
function TestLauncher.test_the_lost_node()
  local rule = ("-"):rep(74) .. "\n"
  local not_started = rule .. "ORTE was unable to reliably start one or more daemons.\nThis usually is\n"
  local cases = {
    { "ssh: connect to host b port 22: No route to host\n[a:224] plm:rsh: Warning: setpgid(229,229) failed "
      .. "in parent with errno=...\n" .. not_started,
      "mpirun cannot reach all nodes: ssh: connect to host b port 22: No route to host" },
    { not_started, "mpirun cannot reach all nodes" },
    { rule .. "ORTE has lost communication with a remote daemon.\n\n  HNP daemon   : [[3,0],0] on node a\n"
      .. "  Remote daemon: [[3,0],2] on node b\n\nThis is usually due to",
      "mpirun has lost its connection to node b" },
    { "mpirun noticed that process rank 1 with PID 0 on node n\nexited on signal 9 (Killed).\n" },
  }
  for _, case in ipairs(cases) do lu.assertEquals(launcher.lost_node(case[1]), case[2]) end
end

function TestLauncher:test_a_session_folder_is_removed_and_no_other()
  local handle <close> = assert(io.open("/proc/sys/kernel/hostname"))
  local here, script = handle:read("l"):match("^[^.]+"), self.folder .. "/remove.lua"
  local names = { [("ompi.%s.0/pid.123/1"):format(here)] = false, [("ompi.%s.0/pid.124"):format(here)] = true,
    [("ompi.%sx.0/pid.123"):format(here)] = true, [("ompi.%s.1/pid.123"):format(here)] = false,
    [("prterun.%s.123.0/1"):format(here)] = false, [("prterun.%s.124.0"):format(here)] = true,
    [("prterun.%sx.123.0"):format(here)] = true }
  for name in pairs(names) do assert(file.make_folder(self.folder .. "/" .. name)) end
  lib.write(script, 'require("conversation.launcher").remove_session_folder(123)\n')
  lib.ends(0, "", lib.run({ lib.gentables, "lua", script }, { "TMPDIR=" .. self.folder }))
  for name, stays in pairs(names) do
    lu.assertEquals(file.exists(self.folder .. "/" .. name), stays, name)
  end
  lu.assertFalse(file.exists(("%s/ompi.%s.1"):format(self.folder, here)))
end

return require "suites" { { "TestLauncher", TestLauncher } }
