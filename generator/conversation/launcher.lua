-- How ranks are started: the command line that comes before the bench's own. `mpirun --version` distinguishes
-- Open MPI from MPICH; any other launcher is given as text, such as `srun --mpi=pmix -n {ranks}`.
--
-- On several nodes, `over` has their number and hosts: { nodes, ranks_per_node, hosts (their names, or nil),
-- hostfile (the path of mpirun's host file, or nil) }. Without hosts, mpirun finds them in the allocation.
local child_process = require "system.child_process"
local fail = require "base.fail"
local file = require "core.file"
local protocol = require "conversation.protocol"
local sequences = require "base.sequences"
local system = require "core.system"

local launcher = {}

local VERSION_PATIENCE = 30 -- seconds for mpirun --version

-- The words of a launcher that was given as text, with numbers and hosts filled in.
local function from_text(text, ranks, over)
  local hosts = over.hosts and table.concat(over.hosts, ",")
  local values = { ranks = ranks, nodes = over.nodes, ranks_per_node = over.ranks_per_node, hosts = hosts }
  if not text:find("%S") then
    fail.input("the launcher is empty; give one such as --launcher 'srun -n {ranks}'")
  end
  if not text:find("{ranks}", 1, true) then
    fail.input("the launcher %q has no {ranks}; write {ranks} where the number of ranks goes", text)
  end
  if text:find("{hosts}", 1, true) and not hosts then
    fail.input("the launcher %q has {hosts}, and no hosts are known; --hostfile FILE gives them, or an "
      .. "allocation of Slurm", text)
  end
  local words = {}
  for word in text:gmatch("%S+") do words[#words + 1] = (word:gsub("{([%l_]+)}", values)) end
  return words
end

local function append(words, ...) table.move({ ... }, 1, select("#", ...), #words + 1, words) end

-- The first line of `mpirun --version`.
local function version_line()
  local ran = child_process.run({ "mpirun", "--version" }, { seconds = VERSION_PATIENCE })
  if ran.problem == "start" then
    fail.input("no mpirun (%s); install Open MPI or MPICH, or give another launcher with --launcher",
      ran.reason)
  end
  return ran.lines[1] or ""
end

-- Open MPI's version, { major, text }; nil where mpirun is another's.
function launcher.open_mpi_version()
  local line = version_line()
  local text = (line:find("Open MPI", 1, true) or line:find("OpenRTE", 1, true)) and line:match("%)%s*(%S+)")
  return text and { text = text, major = tonumber(text:match("^%d+")) }
end

-- Whether the environment has one of these variables.
local function is_set(...) return sequences.any({ ... }, os.getenv) end

-- The words in front of mpirun, which set its environment:
-- - hwloc does not read PCI devices, which ranks on one node do not use. In a virtual machine, reading them
--   in mpirun and in each rank takes half of the processor time of a launch. Not set if the environment names
--   what hwloc reads, which this would override.
-- - PMIx gives ranks their settings in messages, not in shared memory. Shared memory has a lock: if a rank
--   dies while it holds the lock, mpirun waits forever (https://github.com/openpmix/openpmix/issues/1233).
local function environment()
  local words = { "env" }
  if not is_set("HWLOC_COMPONENTS", "HWLOC_XMLFILE", "HWLOC_SYNTHETIC", "HWLOC_FSROOT") then
    words[#words + 1] = "HWLOC_COMPONENTS=-pci,-linuxio"
  end
  if not is_set("PMIX_MCA_gds") then words[#words + 1] = "PMIX_MCA_gds=hash" end
  return #words > 1 and words or {}
end

-- The command that starts Open MPI's ranks with its own choice of components, each rank on a core if there
-- are enough.
function launcher.plain_command(ranks, cores)
  local words = environment()
  append(words, "mpirun", "-n", tostring(ranks))
  if system.is_root() then append(words, "--allow-run-as-root") end
  append(words, table.unpack(ranks > cores and { "--oversubscribe", "--bind-to", "none" } or
    { "--bind-to", "core" }))
  return words
end

-- The bench calls each algorithm of coll/tuned, and coll/sm, in one process: they must be loaded, but must
-- not be the library's own choice.
local COLLECTIVES = { "--mca", "coll_sm_priority", "1", "--mca", "coll_tuned_use_dynamic_rules", "1" }

-- The same for coll/han and coll/adapt, which run between nodes. The allreduce of coll/han in segments writes
-- beyond its memory in Open MPI 4.1.4; the simple one is right.
local COLLECTIVES_OVER_NODES = { "--mca", "coll_han_priority", "1", "--mca", "coll_adapt_priority", "1",
  "--mca", "coll_han_use_simple_allreduce", "1" }

-- The hosts of Open MPI's ranks: each with the number of its ranks as its slots.
local function open_mpi_hosts(over)
  local words = over.hostfile and { "--hostfile", over.hostfile } or {}
  if over.hosts then
    local slots = sequences.map(over.hosts, function(host) return host .. ":" .. over.ranks_per_node end)
    append(words, "--host", table.concat(slots, ","))
  end
  return words
end

-- The ranks are on one node: shared memory is the only transport; up to Open MPI 4 it is called vader. If
-- pml is not set, Open MPI also loads the libraries of all networks, about 0.2 s per launch. A pml that the
-- environment sets stays.
--
-- With `over.hosts` it is another node, as others of the same sweep.
local function open_mpi(version, ranks, cores, over)
  local major = tonumber(version:match("%)%s*(%d+)")) or 4
  local words = launcher.plain_command(ranks, cores)
  append(words, table.unpack(open_mpi_hosts(over)))
  if not os.getenv("OMPI_MCA_pml") then append(words, "--mca", "pml", "ob1") end
  append(words, "--mca", "btl", major >= 5 and "self,sm" or "self,vader")
  append(words, table.unpack(COLLECTIVES))
  return words
end

-- Open MPI over several nodes chooses among all its transports. hwloc reads PCI devices there, because Open
-- MPI and the libraries of networks choose cards that are near a rank. A binding that the environment sets
-- stays. PMIx must not give settings in messages alone (gds=hash): ranks of Open MPI 4.1.4 then take ranks of
-- other nodes for their neighbours.
local function open_mpi_over_nodes(ranks, cores, over)
  local words = { "mpirun", "-n", tostring(ranks) }
  if system.is_root() then append(words, "--allow-run-as-root") end
  append(words, table.unpack(open_mpi_hosts(over)))
  append(words, "--map-by", ("ppr:%d:node"):format(over.ranks_per_node))
  if over.ranks_per_node > cores then
    append(words, "--oversubscribe", "--bind-to", "none")
  elseif not is_set("OMPI_MCA_hwloc_base_binding_policy") then
    append(words, "--bind-to", "core")
  end
  append(words, table.unpack(COLLECTIVES))
  append(words, table.unpack(COLLECTIVES_OVER_NODES))
  return words
end

-- The command of MPICH's mpirun, Hydra.
local function hydra(ranks, over)
  local words = { "mpirun", "-n", tostring(ranks) }
  if over.nodes > 1 then append(words, "-ppn", tostring(over.ranks_per_node)) end
  if over.hosts then append(words, "-hosts", table.concat(over.hosts, ",")) end
  return words
end

-- Returns the words that start `ranks` ranks on nodes of `cores` cores each. `text`: a launcher that the user
-- gave, or nil. `over`: the nodes; nil: this one.
function launcher.command(ranks, cores, text, over)
  over = over or { nodes = 1, ranks_per_node = ranks }
  if text then return from_text(text, ranks, over) end
  local version = version_line()
  if version:find("Open MPI", 1, true) or version:find("OpenRTE", 1, true) then
    if over.nodes > 1 then return open_mpi_over_nodes(ranks, cores, over) end
    return open_mpi(version, ranks, cores, over)
  end
  if (over.nodes > 1 or over.hosts) and not version:find("HYDRA", 1, true) then
    fail.input("mpirun is neither Open MPI's nor MPICH's (%s); for several nodes a --launcher with {ranks} "
      .. "and {nodes} is required", version)
  end
  return hydra(ranks, over)
end

-- Where Open MPI keeps the files of a run.
local function session_folders()
  local named = sequences.map({ "TMPDIR", "TEMP", "TMP" }, os.getenv)
  return sequences.find(named, function(folder) return folder ~= "" end) or "/tmp"
end

-- This host's name up to the first dot, as Open MPI names it; nil if it is unknown.
local function host()
  local handle <close> = io.open("/proc/sys/kernel/hostname")
  return handle and (handle:read("l") or ""):match("^[^.]+")
end

-- Removes the session folder that an Open MPI launcher left which had to be killed: up to version 4
-- ompi.HOST.UID/pid.PID, since then prterun.HOST.PID.UID. `pid` is the launcher's; it has ended, as all its
-- ranks have.
function launcher.remove_session_folder(pid)
  local root, here = session_folders(), host()
  if not here then return end
  for _, name in ipairs(file.list(root) or {}) do
    local path = root .. "/" .. name
    if name:find("ompi." .. here .. ".", 1, true) == 1 then
      file.remove_tree(("%s/pid.%d"):format(path, pid))
      os.remove(path) -- fails while other runs have folders in it
    elseif name:find("prterun." .. here .. ".", 1, true) == 1 and name:find("." .. pid .. ".", 1, true) then
      file.remove_tree(path)
    end
  end
end

-- Removes the segments of Open MPI's shared-memory transport that a rank left because it was killed while it
-- made them: mpirun does not remove these. Only after all processes have ended. `of`: the fields of the
-- bench's line `segments`, or nil.
function launcher.remove_segments(of)
  for _, name in ipairs(of and file.list(of.folder) or {}) do
    local uid, job = name:match("^vader_segment%..*%.(%d+)%.(%x+)%.%d+$")
    if uid == of.uid and job == of.job then os.remove(of.folder .. "/" .. name) end
  end
end

-- Runs a bench under a launcher to its end, as child_process.run does, with options.on_line. If it failed,
-- removes what Open MPI left.
function launcher.run(argv, options)
  local segments
  local function on_line(line)
    local kind, fields = protocol.parse(line)
    if kind == "segments" then
      segments = fields
    elseif options.on_line then
      options.on_line(line)
    end
  end
  local own = setmetatable({ returns_on_signal = true, on_line = on_line }, { __index = options })
  local ran = child_process.run(argv, own)
  if ran.pid and not ran.well then launcher.remove_session_folder(ran.pid) end
  launcher.remove_segments(segments)
  if not options.returns_on_signal then child_process.raise_if_interrupted() end
  return ran
end

-- The rank that died and the cause, from stderr of Open MPI's mpirun: the rank as text, if it is named, and a
-- line such as "rank 1 died: signal 9 (Killed)"; nil if stderr has no such message. If a process is killed
-- within some milliseconds of its start, Open MPI 4.1.4 does not always name the rank.
function launcher.who_died(errors)
  local text = errors:gsub("%s+", " ")
  local rank, how = text:match("process rank (%d+) .-exited on (signal %d+ %b())")
  if not rank then
    rank, how = text:match("Process name: %[%[%d+,%d+%],(%d+)%] Exit code: (%d+)")
    how = how and "exit code " .. how
  end
  if rank then return rank, ("rank %s died: %s"):format(rank, how) end
  local nameless = text:find("but 1 process returned a non-zero exit code", 1, true)
  return nil, nameless and "one rank died; mpirun does not name it" or nil
end

-- Whether a line of stderr is a warning of Open MPI's daemons, which ends no launch, such as
-- "[node:224] plm:rsh: Warning: setpgid(229,229) failed in parent ...": mpirun was slower than its own agent.
function launcher.is_warning(line) return line:find("^%[[^%]]*:%d+%] %S+: Warning: ") ~= nil end

-- What mpirun of Open MPI reports in stderr about a node: that it cannot start there, with the reason of ssh
-- or of another agent, or that it has lost it; nil if stderr has no such message. It has the names of nodes.
function launcher.lost_node(errors)
  local before, reason = errors:match("^(.-)%-+\n%u+ was unable to reliably start one or more daemons"), nil
  for line in (before or ""):gmatch("[^\n]+") do
    if line:find("%w") and not launcher.is_warning(line) then reason = line end
  end
  if before then return "mpirun cannot reach all nodes" .. (reason and ": " .. reason or "") end
  local node = errors:match("has lost communication with a remote daemon.-Remote daemon:[^\n]* on node (%S+)")
  return node and ("mpirun has lost its connection to node %s"):format(node)
end

-- The cause of a failed launch in Open MPI's stderr, in one line: a lost node, a rank that died, or the first
-- paragraph under a rule; nil if it has none of these.
function launcher.cause(errors)
  local _, died = launcher.who_died(errors)
  local paragraph = errors:match("%-%-%-%-%-+\n(%w.-)\n[%s-]")
  return launcher.lost_node(errors) or died or paragraph and paragraph:gsub("%s+", " ") or nil
end

return launcher
