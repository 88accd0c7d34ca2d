-- gentables tune: measures candidates of any collective, ours and those of plug-ins, and chooses the best for
-- each size.
--
-- All candidates of the command line's cells (tune/pass_input.lua) are measured in one group of ranks,
-- interleaved (tune/rank_group.lua); before that, plug-ins are tried in processes of their own. The cache
-- (tune/cache.lua) keeps results of the same machine, bench and libraries. tune/choice.lua chooses and
-- prints, tune/write.lua writes.
local backends = require "conversation.backends"
local bench = require "conversation.bench"
local cache = require "tune.cache"
local choice = require "tune.choice"
local fail = require "base.fail"
local rank_group = require "tune.rank_group"
local hosts = require "conversation.hosts"
local incumbent = require "consult.incumbent"
local lists = require "lists.lists"
local pass_input = require "tune.pass_input"
local network = require "machine.network"
local progress = require "system.progress"
local provenance = require "rows.provenance"
local quantities = require "base.quantities"
local machines = require "machine.machines"
local rows = require "core.rows"
local sequences = require "base.sequences"
local sanitizer = require "tune.sanitizer"
local system = require "core.system"
local write = require "tune.write"

local tune = {}

tune.summary = "Measures candidates of any collective on this machine, and prints the best for each size."
tune.options = {
  { name = "op", value = "OP,OP...", comma = true, required = true, values = pass_input.ops,
    help = "allreduce, allgather, reducescatter, alltoall, alltoallv, broadcast; or PyTorch's names" },
  { name = "sizes", value = "A:B[:F]", default = "1K:1M:4",
    help = "bytes of the larger buffer of a rank: from A to B by a factor F (default 2); or A,B,C" },
  { name = "dtype", value = "NAME", default = "bfloat16", values = lists.names("dtypes"),
    help = "bfloat16, float16 or float32" },
  { name = "tp", value = "N,N...", type = "whole", least = 2, most = lists.most_ranks, comma = true,
    default = "2", help = "numbers of ranks, on all nodes together" },
  { name = "nodes", value = "N", type = "whole", most = lists.most_ranks, default = 1,
    help = "nodes, each with the same number of ranks; plug-ins are tried on this one" },
  { name = "hostfile", trusted = true, value = "FILE",
    help = "host file of mpirun, for several nodes (default: the nodes of Slurm's allocation)" },
  { name = "splits", value = "A:B...",
    help = "alltoallv: weights of the destinations, such as 3:1 or 2:0 (default: 2:1)" },
  { name = "fusion", value = "NAME", values = pass_input.epilogues,
    help = "allreduce: measure it with this epilogue, too" },
  { name = "hidden-size", value = "N", type = "size", least = 16, most = 1 << 24, default = 4096,
    help = "hidden size of the epilogue" },
  { name = "plugin", trusted = true, value = "LIB.so", many = true,
    help = "a shared library with more candidates; repeat it for several" },
  { name = "strategies", value = "A,B...", comma = true, values = lists.names("strategies"),
    help = "only these candidates (default: all usual ones)" },
  { name = "default", value = "NAME",
    help = "the choice if nothing can be measured (default: MPI; with --backend cuda NCCL)" },
  { name = "samples", value = "N", type = "whole", most = 100000, default = 20,
    help = "timed calls of each candidate at each size" },
  { name = "warm-up", value = "N", type = "whole", least = 0, most = 100000, default = 5,
    help = "calls before the timed ones" },
  { name = "backend", value = "NAME", one_of = { "host", "cuda" }, default = "host",
    help = "host: CPU ranks; cuda: GPU ranks" },
  { name = "sanitizer", trusted = true, value = "PATH",
    help = "cuda: compute-sanitizer for trials of plug-ins, or none (default: in PATH or $CUDA_HOME/bin)" },
  { name = "loopback", help = "cuda: all ranks on one GPU, whose free memory they share" },
  { name = "launches", value = "N", type = "whole", most = rows.LAUNCHES_MAX, default = 1,
    help = "launches of the ranks; above 1, --out gets rows for tables, too" },
  { name = "sync", value = "HOW", one_of = { "pass", "op", "both" }, default = "pass",
    help = "synchronise ranks once for all (pass) or before each op (op); both: compare the two" },
  { name = "timeout", value = "SECONDS", type = "number", above = 0, most = 1e6, default = 30,
    help = "time that a candidate, or a rank, may take" },
  { name = "out", value = "DIR",
    help = "folder of tuned.json, gentables_tuned.py, gentables_torch.py and rows" },
  { name = "cache", value = "FILE",
    help = "results of earlier runs (default: ~/.cache/gentables/tune.json)" },
  { name = "fresh", help = "measure cells again that the cache has" },
  { name = "json", help = "print JSON" },
  { name = "bench", trusted = true, value = "PROGRAM",
    help = "bench (default: the gentables-bench beside gentables)" },
  { name = "launcher", trusted = true, value = "COMMAND",
    help = "launcher in place of mpirun, with {ranks}, and for several nodes also "
      .. "{nodes}, {ranks_per_node} and {hosts} as it needs them" },
}
tune.example = "gentables tune --op allgather --sizes 1K:64K\n"
  .. "  cc -O2 -shared -fPIC -I bench/plugins bench/plugins/examples/chunked.c -o chunked.so\n"
  .. "  gentables tune --op allreduce,broadcast --tp 2 --plugin ./chunked.so --out tuned"

-- Rejects options of the other backend before anything is started.
local function check_backend(args)
  if args.backend == "host" and args.sanitizer then fail.input("--sanitizer requires --backend cuda") end
  if args.backend == "host" and args.loopback then fail.input("--loopback requires --backend cuda") end
end

-- Rejects numbers of ranks that do not divide among the nodes, or are too many for one.
local function check_nodes(args)
  if args.nodes > 1 and args.backend ~= "host" then
    fail.input("--nodes %d requires --backend host", args.nodes)
  end
  for _, ranks in ipairs(args.tp) do
    if ranks % args.nodes ~= 0 then
      fail.input("--tp: %d ranks do not divide among %d nodes; give multiples of %d", ranks, args.nodes,
        args.nodes)
    end
    if ranks // args.nodes > lists.most_ranks_per_node then
      fail.input("--tp: %d ranks on %s; a node has %d at most", ranks,
        quantities.counted(args.nodes, "node"), lists.most_ranks_per_node)
    end
  end
end

local function program_of(args)
  local backend = backends[args.backend]
  local name = args.launcher and backend.program_of_launcher or backend.program
  return args.bench or system.program():gsub("[^/]*$", "") .. name
end

local function arch_of(args, identity)
  if args.backend == "host" then return "host" end
  return backends.cuda.arch(args.loopback and "gpu-loopback" or "gpu", identity)
end

local function new_job(args)
  check_backend(args)
  check_nodes(args)
  local program = program_of(args)
  local identity, library = bench.identify(program)
  local job = { program = program, identity = identity, machine = machines.facts(library),
    library = library, plugins = args.plugin or {}, samples = args.samples,
    warm_up = args.warm_up, launches = args.launches, sync = args.sync, timeout = args.timeout,
    launcher = args.launcher, nodes = args.nodes, excluded = {},
    default = args.default or args.backend == "host" and "MPI" or "NCCL",
    backend = args.backend, arch = arch_of(args, identity), progress = progress.new(),
    environment = system.environment() }
  job.hosts = hosts.for_nodes(job.nodes, args.hostfile, job.launcher, "the command")
  job.network = provenance.of_network(network.interfaces(), job.hosts and job.hosts.names)
  if job.nodes > 1 then job.machine = provenance.machine_over(job.machine, job.network) end
  job.incumbent = incumbent.print_of(program, job.environment)
  job.excluded_at = {} -- at how many ranks each of them failed
  if args.backend == "cuda" then
    job.machine.gpu = backends.gpu(library)
    job.sanitizer = sanitizer.find(args.sanitizer)
  end
  job.candidates, job.libraries = rank_group.candidates(job)
  job.ops = pass_input.read_ops(args, job.backend)
  job.sizes = pass_input.read_sizes(args.sizes)
  job.world_sizes = args.tp
  table.sort(job.world_sizes)
  job.cells = pass_input.cells(job, args)
  pass_input.check_default(job)
  return job
end

-- Keeps results for the next run. If they cannot be kept, the run continues.
local function keep(kept, job, cells)
  local is_kept, problem = pcall(kept.save, kept, job, cells)
  if is_kept then return end
  if not fail.is_failure(problem) or problem.code > 2 then error(problem, 0) end
  job.progress:print(("gentables: %s; these times are not kept for the next run"):format(problem.message))
end

-- Measures the cells that the cache does not have, and keeps the results of each number of ranks. Returns a
-- list of texts: for each number of ranks at which nothing could be measured, the reason.
local function measure(job, kept)
  local problems, bar = {}, job.progress
  bar.total = job.launches * #sequences.filter(job.world_sizes, function(world_size)
    return kept:has_missing(job, world_size)
  end)
  bar:in_turn()
  for _, world_size in ipairs(job.world_sizes) do
    local cells = kept:missing(job, world_size)
    local problem, reason
    local total = bar.done + job.launches -- with all launches at this number of ranks
    if #cells > 0 then problem, reason = rank_group.measure(job, world_size, cells) end
    if problem then bar.total = bar.total - (total - bar.done) end
    if problem then
      problems[#problems + 1] = ("TP %d: %s"):format(world_size, problem)
      choice.take_default(job, world_size, reason)
    else
      keep(kept, job, cells)
    end
  end
  job.progress:clear()
  return problems
end

function tune.run(args)
  local job = new_job(args)
  if args.out then write.prepare(job, args.out) end
  local kept = cache.open(args.cache, args.fresh)
  kept:take(job)
  local problems = measure(job, kept)
  choice.make(job)
  if args.out then write.all(job, args.out) end
  if args.json then print(write.json(job)) else choice.report(job) end
  if #problems > 0 then
    local code = backends.code_of_refusal(backends[job.backend], job.identity, job.launcher)
    fail.with(code, "%s; every op takes its default, %s%s", table.concat(problems, "; "), job.default,
      #problems < #job.world_sizes and ", there" or "")
  end
end

return tune
