-- gentables sweep: measures the cells of a spec that have no rows yet, and writes rows and their provenance.
local backends = require "conversation.backends"
local bench = require "conversation.bench"
local fail = require "base.fail"
local file = require "core.file"
local history_entries = require "history.history_entries"
local history_store = require "history.history_store"
local hosts = require "conversation.hosts"
local incumbent = require "consult.incumbent"
local lists = require "lists.lists"
local process = require "core.process"
local machines = require "machine.machines"
local network = require "machine.network"
local provenance = require "rows.provenance"
local sequences = require "base.sequences"
local settings = require "choose.settings"
local spec = require "rows.spec"
local system = require "core.system"

local sweep = {}

local BUDGET_S = 60 -- of a sweep, unless it is exhaustive

sweep.summary = "Measures the cells of a spec that have no rows yet. The same command resumes a sweep that\n"
  .. "was interrupted. A sweep that its budget ended is finished; only --refine continues it."
sweep.positional = { name = "SPEC", min = 0, max = 1, help = "the spec (default: DIR/spec.lua)" }
sweep.options = {
  { name = "out", value = "DIR", help = "folder of the rows", required = true },
  { name = "arch", value = "A", help = "arch of the rows (default: the spec's)" },
  { name = "sm-version", value = "N", type = "whole",
    help = "SM version of the rows, if it is not that of this GPU" },
  { name = "tp", value = "N,N...", type = "whole", comma = true,
    help = "only these TP sizes (default: the spec's)" },
  { name = "nodes", value = "N,N...", type = "whole", comma = true,
    help = "only these numbers of nodes (default: the spec's)" },
  { name = "budget", value = "SECONDS", type = "number", least = 0, most = 1e9, one_of = { "none" },
    help = "time for measuring, all TP sizes together; 0 or none: no limit (default: limits.seconds of "
      .. ("the spec, else %d; with --exhaustive no limit; with --transport 240 for each TP size)"):format(
        BUDGET_S) },
  { name = "budget-node-seconds", value = "N", type = "number", above = 0, most = 1e9,
    help = "budget as seconds times nodes, the same for each placement that is measured" },
  { name = "refine", help = "continue on the rows of a sweep that its budget ended" },
  { name = "exhaustive", help = "measure every cell, not only those that may change a choice" },
  { name = "fresh", help = "measure cells again that have rows" },
  { name = "transport", help = "search Open MPI's parameters instead: transport.tp{N}.{arch}.csv" },
  { name = "launcher", trusted = true, value = "COMMAND",
    help = "launcher in place of mpirun, with {ranks}, and for several nodes also {nodes}, {ranks_per_node} "
      .. "and {hosts} as it needs them (default: $GENTABLES_LAUNCHER)" },
  { name = "hostfile", trusted = true, value = "FILE",
    help = "host file of mpirun, for several nodes (default: the nodes of Slurm's allocation)" },
  { name = "no-screening", help = "use the nodes as they come, without a search for slow ones" },
  { name = "incumbent", trusted = true, value = "HEADER",
    help = "lookup of AUTO: allreduce_table.h or customAllReduceUtils.h, code that runs in the ranks with "
      .. "all your rights (default: as built)" },
  { name = "bench", trusted = true, value = "PROGRAM",
    help = "bench (default: the gentables-bench beside gentables)" },
  { name = "history", value = "FILE", help = "history that gets the new rows, too: see gentables history" },
  { name = "timeout", value = "SECONDS", type = "number", above = 0, most = 1e9,
    default = 60, help = "stall timeout of a bench, beyond its time for a cell" },
}
sweep.example = "gentables sweep tables/host/spec.lua --out rows --tp 2 --budget 20"

-- ---- the command line -------------------------------------------------------------------------

-- Raises unless all of `values`, of the option --`option`, are among `of_spec`.
local function check_values(option, values, words, of_spec)
  for _, value in ipairs(values or {}) do
    if not lists.contains(of_spec, value) then
      fail.input("--%s: %d is no %s of the spec, which has %s", option, value, words,
        table.concat(of_spec, ", "))
    end
  end
end

-- The placements of the spec that --tp and --nodes select. Prints the combinations that do not exist.
local function placements_of(args, of_spec)
  check_values("tp", args.tp, "TP size", of_spec.tp)
  check_values("nodes", args.nodes, "number of nodes", of_spec.nodes or { 1 })
  local function is_selected(of)
    return (not args.tp or lists.contains(args.tp, of.world_size))
      and (not args.nodes or lists.contains(args.nodes, of.nodes))
  end
  local placements, skipped = spec.placements(of_spec)
  local out = sequences.filter(placements, function(of) return is_selected(of) end)
  for _, of in ipairs(skipped) do
    if is_selected(of) then
      print(("TP %d on %d node%s: skipped: %s"):format(of.world_size, of.nodes, of.nodes == 1 and "" or "s",
        of.reason))
    end
  end
  if #out == 0 then fail.input("--tp and --nodes select no placement of the spec") end
  return out
end

-- The hosts of a sweep (conversation/hosts.lua); nil if all its ranks are on this node.
local function hosts_of(args, placements, given_launcher)
  local most = math.max(1, table.unpack(sequences.field(placements, "nodes")))
  return hosts.for_nodes(most, args.hostfile, given_launcher, "the spec")
end

-- The arch of the rows: the spec's, or another of the same backend.
local function read_arch(name, of_spec)
  if not name then return of_spec.arch end
  local row = lists.arch(name)
  if not row then
    fail.input("--arch: %s is no arch; valid archs: host, host-NAME, smNN, gpu (the GPU of this machine)",
      name)
  end
  if row.backend ~= lists.arch(of_spec.arch).backend then
    fail.input("--arch: %s is of another backend than the spec's %s; a spec for it is required", name,
      of_spec.arch)
  end
  return name
end

-- ---- the verb ---------------------------------------------------------------------------------

local function launcher_of_environment()
  local text = os.getenv("GENTABLES_LAUNCHER")
  return text ~= "" and text or nil
end

-- The module of the incumbent's lookup, which the bench finds by the environment; nil without --incumbent.
local function open_incumbent(args, job)
  if not args.incumbent then return nil end
  if not lists.contains(job.spec.strategies, "AUTO") then
    fail.input("--incumbent requires AUTO, which is not among the spec's strategies")
  end
  local module = incumbent.module(args.incumbent, job.arch)
  job.environment = { "GENTABLES_INCUMBENT=" .. module.path }
  return module
end

-- The spec at `path`, as the provenance records it.
local function recorded_spec(path, loaded)
  local workload = spec.workload_path(loaded, path:match("^(.*)/") or ".")
  return provenance.of_spec(loaded, workload and file.read(workload) or nil)
end

-- How tables of this spec are chosen, for the planner. Only stable numerics depend on an earlier table.
local function choice_of(path, loaded, arch, folder)
  local is_stable = loaded.choice and loaded.choice.numerics == "stable"
  local source = { spec = loaded, data_dir = path:match("^(.*)/") or ".", arch = arch }
  settings.apply(source, { against = not is_stable and "none" or nil }, folder)
  return source
end

-- The time for measuring, in seconds (nil: no limit), and the name of the option that gave it (nil: it is the
-- default). `of_spec`: limits.seconds of the spec, or nil.
local function budget_of(args, of_spec)
  local given, name = args.budget, args.budget and "--budget"
  if args.transport then return given, name end
  if not given and not args.exhaustive then given, name = of_spec, of_spec and "limits.seconds" end
  if given == "none" or given == 0 or not given and args.exhaustive then return nil end
  return given or BUDGET_S, name
end

local function check_options(args)
  if args.budget and args.budget_node_seconds then
    fail.input("--budget and --budget-node-seconds are two budgets; give one")
  end
  if args.refine and args.fresh then fail.input("--refine keeps rows, and --fresh does not; give one") end
  if args.history then history_store.check_sqlite() end
  if not args.transport then return end
  if args.history then fail.input("--transport takes no --history; a history is of strategies") end
  if args.refine then fail.input("--transport takes no --refine") end
  if args.budget == "none" or args.budget == 0 then fail.input("--transport requires a limit as --budget") end
  for _, name in ipairs { "launcher", "hostfile", "budget-node-seconds" } do
    if args[name:gsub("-", "_")] then
      fail.input("--transport takes no --%s; it starts Open MPI's mpirun on this node", name)
    end
  end
end

-- Adds benchmark files to a history. Their rows are written, so a failure is a warning.
local function keep_in_history(path, files)
  local done, problem = pcall(function()
    local store = history_store.open(path, true)
    for _, entry in ipairs(history_entries.of(files)) do store:add(entry) end
    store:close()
  end)
  if done then return end
  local known = fail.of(problem)
  if not fail.is_failure(known) then error(problem, 0) end
  fail.note("warning: %s; the history lacks the new rows, which this adds: gentables "
    .. "history add %s --database %s", known.message, table.concat(files, " "), path)
end

local function new_job(args)
  local path = args[1] or args.out .. "/spec.lua"
  local loaded, seconds = spec.load(path)
  local given_launcher = args.launcher or launcher_of_environment()
  local backend = backends[lists.arch(loaded.arch).backend]
  local name = given_launcher and backend.program_of_launcher or backend.program
  local program = args.bench or system.program():gsub("[^/]*$", "") .. name
  local identity, library = bench.identify(program)
  local arch = backend.arch(read_arch(args.arch, loaded), identity, args.sm_version)
  local job = {
    path = path, out = (args.out:gsub("(.)/+$", "%1")), spec = loaded,
    recorded_spec = recorded_spec(path, loaded),
    arch = arch, backend = backend, placements = placements_of(args, loaded),
    exhaustive = args.exhaustive, refine = args.refine,
    patience = args.timeout, fresh = args.fresh, launcher = given_launcher, screen = not args.no_screening,
    program = program, identity = identity, machine = machines.facts(library),
  }
  job.hosts = hosts_of(args, job.placements, given_launcher)
  job.network = provenance.of_network(network.interfaces(), job.hosts and job.hosts.names)
  job.choice = choice_of(path, loaded, arch, job.out)
  job.budget_node_s = args.budget_node_seconds
  job.budget_s, job.budget_name = budget_of(args, seconds)
  job.refine_s = budget_of({}, seconds) or job.budget_s
  job.machine.gpu = backend == backends.cuda and backends.gpu(library) or nil
  local library_text = args.incumbent and file.read(args.incumbent) or nil
  local function fingerprint_of(machine)
    return provenance.fingerprint(machine, identity, loaded.limits, job.launcher, library_text)
  end
  local over_nodes = provenance.machine_over(job.machine, job.network)
  job.fingerprint = fingerprint_of(job.machine)
  job.over_nodes = { machine = over_nodes, fingerprint = fingerprint_of(over_nodes) }
  job.launch = provenance.of_launch(job.launcher, library_text)
  return job
end

function sweep.run(args)
  local began_at = process.now()
  check_options(args)
  local job = new_job(args)
  job.began_at = began_at
  job.after_writing = args.history and function(files) keep_in_history(args.history, files) end
  local _ <close> = open_incumbent(args, job)
  fail.unless_done(file.make_folder(job.out))
  if args.transport then return require("sweep.transport").run(job) end
  require("sweep.all_sizes").run(job)
  if job.spec.predict then
    require("formats.predicted_in_words").print { require("formats.model").load(job.out, job.arch) }
  end
end

return sweep
