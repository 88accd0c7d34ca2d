-- gentables sweep: measures what a spec asks for and is not there yet, and writes the rows and where they
-- come from.
local backends = require "conversation.backends"
local bench = require "conversation.bench"
local fail = require "base.fail"
local file = require "core.file"
local incumbents = require "consult.incumbent"
local lists = require "lists.lists"
local process = require "core.process"
local provenance = require "rows.provenance"
local spec = require "rows.spec"
local system = require "core.system"

local sweep = {}

sweep.summary = "Measures what a spec asks for and is not there yet: spec -> rows."
sweep.positional = { name = "SPEC", min = 0, max = 1, help = "what to sweep (default: DIR/spec.lua)" }
sweep.options = {
  { name = "out", value = "DIR", help = "where the rows are and go", required = true },
  { name = "arch", value = "A", help = "name for this machine's rows (default: the spec's)" },
  { name = "sm-version", value = "N", type = "whole",
    help = "the rows are for this SM version, whatever GPU this is" },
  { name = "tp", value = "N,N...", type = "whole", comma = true,
    help = "only these TP sizes (default: the spec's)" },
  { name = "budget", value = "SECONDS", type = "number", above = 0, most = 1e9,
    help = "that measuring may take (default: until it is sure; with --transport 240 for each TP size)" },
  { name = "exhaustive", help = "measure every cell, not only where it matters" },
  { name = "fresh", help = "measure anew what is there already" },
  { name = "transport", help = "search Open MPI's parameters, of the transport and others: transport.tp{N}" },
  { name = "launcher", value = "COMMAND", help = "in place of mpirun, with {ranks}; or GENTABLES_LAUNCHER" },
  { name = "incumbent", value = "HEADER",
    help = "whose lookup AUTO asks: allreduce_table.h or customAllReduceUtils.h (default: as built)" },
  { name = "bench", value = "PROGRAM", help = "in place of the gentables-bench beside gentables" },
  { name = "patience", value = "SECONDS", type = "number", above = 0, most = 1e9, default = 60,
    help = "how long a bench may be silent beyond its time for a cell" },
}
sweep.example = "gentables sweep tables/host/spec.lua --out tables/host --tp 2"

-- ---- the command line -------------------------------------------------------------------------

local function check_tp(sizes, asked)
  if not sizes then return asked.tp end
  for _, size in ipairs(sizes) do
    if not lists.contains(asked.tp, size) then
      fail.input("--tp: %d is no TP size of the spec, which has %s", size, table.concat(asked.tp, ", "))
    end
  end
  table.sort(sizes)
  return sizes
end

-- The name for the rows: the spec's, or another of the same backend.
local function read_arch(name, asked)
  if not name then return asked.arch end
  local row = lists.arch(name)
  if not row then
    fail.input("--arch: %s is no arch; it is host, host-NAME, sm and a number, or gpu for what is here", name)
  end
  if row.backend ~= lists.arch(asked.arch).backend then
    fail.input("--arch: %s is not what the spec measures, %s; a spec for it would be right", name, asked.arch)
  end
  return name
end

-- ---- the verb ---------------------------------------------------------------------------------

local function launcher_of_environment()
  local text = os.getenv("GENTABLES_LAUNCHER")
  return text ~= "" and text or nil
end

-- The module of the incumbent that is named, which the bench finds by the environment; nil: none is.
local function open_incumbent(args, job)
  if not args.incumbent then return nil end
  if not lists.contains(job.spec.strategies, "AUTO") then
    fail.input("--incumbent is for AUTO, which is not among the spec's strategies")
  end
  local module = incumbents.module(args.incumbent, job.arch)
  job.environment = { "GENTABLES_INCUMBENT=" .. module.path }
  return module
end

local function new_job(args)
  local asked = spec.load(args[1] or args.out .. "/spec.lua")
  local given_launcher = args.launcher or launcher_of_environment()
  local backend = backends[lists.arch(asked.arch).backend]
  local name = given_launcher and backend.program_of_launcher or backend.program
  local program = args.bench or system.program():gsub("[^/]*$", "") .. name
  local identity, library = bench.identify(program)
  local arch = backend.arch(read_arch(args.arch, asked), identity, args.sm_version)
  local job = {
    out = (args.out:gsub("(.)/+$", "%1")), spec = asked, spec_hash = provenance.spec_hash(asked),
    arch = arch, backend = backend,
    sizes = check_tp(args.tp, asked), budget_s = args.budget, exhaustive = args.exhaustive,
    patience = args.patience, fresh = args.fresh, launcher = given_launcher,
    program = program, identity = identity, machine = provenance.machine(library),
  }
  job.machine.gpu = backend == backends.cuda and backends.gpu(library) or nil
  job.fingerprint = provenance.fingerprint(job.machine, identity, asked.limits, job.launcher,
    args.incumbent and file.read(args.incumbent) or nil)
  return job
end

function sweep.run(args)
  local began_at = process.now()
  local job = new_job(args)
  job.began_at = began_at
  local _ <close> = open_incumbent(args, job)
  local made, message = file.make_folder(job.out)
  if not made then fail.work("%s", message) end
  if args.transport then
    if args.launcher then fail.input("--transport takes no --launcher: it starts Open MPI's mpirun") end
    return require("sweep.transport").run(job)
  end
  require("sweep.all_sizes").run(job)
end

return sweep
