-- The hosts that a sweep over several nodes may use: those of a host file, else those of the allocation of
-- Slurm in which gentables runs, and how long it lasts. Their names go to launchers only, never to files.
local child_process = require "system.child_process"
local fail = require "base.fail"
local file = require "core.file"
local quantities = require "base.quantities"

local hosts = {}

local PATIENCE = 30 -- seconds for a command of Slurm

-- The name of a line such as `node1 slots=8`, `user@node1` or `node1:8`; nil of an empty line or a comment.
local function name_of(line)
  local word = line:gsub("#.*", ""):match("^%s*(%S+)")
  return word and word:match("^[^:]+")
end

-- Adds a name; each host counts once, although its name may be there once for each slot.
local function add(names, name)
  if name and not names[name] then names[#names + 1], names[name] = name, true end
end

-- The names in a host file of mpirun.
local function read_file(path)
  local names, number = {}, 0
  for line in (fail.unless(file.read(path)) .. "\n"):gmatch("(.-)\n") do
    local name = name_of(line)
    number = number + 1
    if name and not name:find("^[%w@._%-]+$") then
      fail.input("%s:%d: %q is not the name of a host; write a line such as `node1 slots=8`", path, number,
        name)
    end
    add(names, name)
  end
  if #names == 0 then fail.input("%s:1: no hosts; write a line such as `node1 slots=8`", path) end
  return names
end

-- The names of the nodes of Slurm's allocation, which it abbreviates, such as node[1-4].
local function read_slurm(list)
  local ran = child_process.run({ "scontrol", "show", "hostnames", list }, { seconds = PATIENCE })
  if not ran.well then
    fail.input("scontrol show hostnames %s: %s; --hostfile FILE gives the hosts of this allocation", list,
      child_process.last_line(ran.errors) or ran.reason)
  end
  local names = {}
  for _, line in ipairs(ran.lines) do add(names, line:match("%S+")) end
  return names
end

-- Returns { names, hostfile (the path, or nil), source (for messages) }; nil if there are none. `path`: of a
-- host file, or nil.
function hosts.find(path)
  if path then return { names = read_file(path), hostfile = path, source = path } end
  local list = os.getenv("SLURM_JOB_NODELIST")
  if not list or list == "" then return nil end
  return { names = read_slurm(list), source = "the allocation of Slurm" }
end

-- The hosts of ranks on up to `most` nodes; nil if all ranks are on this one. `path`: of a host file, or nil;
-- `launcher`: a launcher that was given as text, or nil; `owner`: what has so many nodes, for messages.
-- Raises if the hosts are too few, or unknown although mpirun needs them.
function hosts.for_nodes(most, path, launcher, owner)
  if most == 1 and not path then return nil end
  local found = hosts.find(path)
  if not found and not launcher then
    fail.input("no hosts are known for %d nodes; give --hostfile FILE, run in an allocation of Slurm, or "
      .. "give a --launcher with {ranks} and {nodes}", most)
  end
  if found and #found.names < most then
    fail.input("%s has %s, and %s has %d nodes; --nodes gives other numbers of nodes", found.source,
      quantities.counted(#found.names, "host"), owner, most)
  end
  return found
end

-- The seconds of a time of Slurm, such as 1-02:30:00 or 29:30; nil of UNLIMITED and other words.
local function seconds_of(text)
  local days, rest = text:match("^(%d+)%-(.*)$")
  local hours, minutes, seconds = (rest or text):match("^(%d+):(%d+):(%d+)$")
  if not hours then minutes, seconds = (rest or text):match("^(%d+):(%d+)$") end
  if not minutes then return nil end
  return (((days or 0) * 24 + (hours or 0)) * 60 + minutes) * 60 + seconds
end

-- The seconds until Slurm's allocation ends; nil: there is none, or its end is not known.
function hosts.seconds_left()
  local job = os.getenv("SLURM_JOB_ID")
  if not job or job == "" then return nil end
  local ran = child_process.run({ "squeue", "--noheader", "--job", job, "--format=%L" },
    { seconds = PATIENCE })
  return ran.well and seconds_of((ran.lines[1] or ""):match("%S+") or "") or nil
end

-- The nodes of a placement, { nodes, ranks_per_node }, as launcher.command takes them: on the first of the
-- hosts (of hosts.find; nil: unknown).
function hosts.over(placement, found)
  local over = { nodes = placement.nodes, ranks_per_node = placement.ranks_per_node }
  if not found then return over end
  over.hosts, over.hostfile = table.move(found.names, 1, placement.nodes, 1, {}), found.hostfile
  return over
end

return hosts
