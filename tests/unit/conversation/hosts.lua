-- hosts: the names in a host file of mpirun, and those of an allocation of Slurm; scontrol is a script.
local lu = require "luaunit"
local lib = require "unit.sweep.lib"

local TestHosts = lib.with_folder(lib.scratch, "/tmp")

-- The names for a host file with this text (nil: without one), separated by spaces; or stderr, if they are
-- refused.
function TestHosts:names(text, environment)
  local path, script = self.folder .. "/hosts", self.folder .. "/ask.lua"
  if text then lib.write(path, text) end
  lib.write(script, ([[
    local found = require("conversation.hosts").find(%s)
    print(found and table.concat(found.names, " ") or "none")
  ]]):format(text and ("%q"):format(path) or "nil"))
  local ended, out, errors = lib.run({ lib.gentables, "lua", script }, environment or
    { "SLURM_JOB_NODELIST=" })
  if ended ~= "exit code 0" then lu.assertEquals(ended, "exit code 2", errors) end
  return ended == "exit code 0" and out or errors
end

function TestHosts:test_a_host_file()
  lu.assertEquals(self:names("# two\nnode1 slots=8\n\n  node-2.cluster max_slots=4 # b\n"),
    "node1 node-2.cluster")
  lu.assertEquals(self:names("node1:8\nuser@node2:8\n"), "node1 user@node2")
  lu.assertEquals(self:names("node1\nnode1\nnode2\nnode1\n"), "node1 node2")
end

function TestHosts:test_a_host_file_without_hosts_is_refused()
  for _, text in ipairs { "", "# node1\n", " \n" } do
    lu.assertStrMatches(self:names(text), "gentables: [^\n]*/hosts:1: no hosts; [^\n]*\n")
  end
  lu.assertStrMatches(self:names("node1\n../x\n"),
    "gentables: [^\n]*/hosts:2: \"../x\" is not the name of a host; [^\n]*\n")
end

function TestHosts:scontrol(text)
  lib.write(self.folder .. "/scontrol", "#!/bin/sh\n" .. text .. "\n")
  assert(os.execute(("chmod +x '%s/scontrol'"):format(self.folder)))
  return { "SLURM_JOB_NODELIST=node[1-2]", ("PATH=%s:/usr/bin:/bin"):format(self.folder) }
end

function TestHosts:test_an_allocation_of_slurm()
  lu.assertEquals(self:names(nil), "none")
  lu.assertEquals(self:names(nil, self:scontrol('[ "$*" = "show hostnames node[1-2]" ] && echo node1 && '
    .. "echo node2")), "node1 node2")
  lu.assertEquals(self:names("own\n", self:scontrol("exit 1")), "own")
end

function TestHosts:test_an_allocation_that_slurm_cannot_name()
  lu.assertStrMatches(self:names(nil, self:scontrol("echo broken >&2; exit 1")),
    "gentables: scontrol show hostnames node%[1%-2%]: broken; %-%-hostfile FILE [^\n]*\n")
end

-- The seconds that are left in an allocation if squeue prints this; "nil" if they are unknown.
function TestHosts:seconds_left(time)
  local asked = "--noheader --job 7 --format=%L"
  lib.write(self.folder .. "/squeue",
    ("#!/bin/sh\n[ \"$*\" = '%s' ] && echo '%s'\n"):format(asked, time))
  assert(os.execute(("chmod +x '%s/squeue'"):format(self.folder)))
  lib.write(self.folder .. "/ask.lua", 'print(require("conversation.hosts").seconds_left())\n')
  return (select(2, lib.run({ lib.gentables, "lua", self.folder .. "/ask.lua" },
    { "SLURM_JOB_ID=7", ("PATH=%s:/usr/bin:/bin"):format(self.folder) })))
end

function TestHosts:test_the_time_of_an_allocation()
  local cases = { ["0:05"] = "5", ["29:30"] = "1770", ["1:00:00"] = "3600", ["2-01:00:01"] = "176401",
    ["      1:02 "] = "62", UNLIMITED = "nil", INVALID = "nil", [""] = "nil" }
  for time, seconds in pairs(cases) do lu.assertEquals(self:seconds_left(time), seconds, time) end
end

return require "suites" { { "TestHosts", TestHosts } }
