-- The options that measuring commands share, and their meaning: counts, ranks, the workload.
local fail = require "base.fail"
local lists = require "lists.lists"
local sequences = require "base.sequences"
local sorted_keys = require("base.ordering").sorted_keys
local numbers = require "base.numbers"
local description = require "workload.description"
local configuration = require "workload.configuration"
local steps = require "workload.steps"
local texts = require "base.text"
local workers = require "system.workers"

local common_options = {}

common_options.MOST_RANKS = 16

local MOST_STEPS = 100000

-- The backends: the maximum of channels and threads, the defaults of a sweep and of a single run, and the
-- transports; the first is the default.
local backends = {
  host = { channels = 32, threads = 16, sweep = { channels = "1,2,4", threads = "1,2" },
    run = { channels = "2", threads = "1" }, transports = { "builtin", "mpi" } },
  cuda = { channels = 128, threads = 1024, sweep = { channels = "28,42,56,70", threads = "256,512" },
    run = { channels = "28", threads = "512" }, transports = { "nccl", "builtin" } },
}

common_options.BACKEND = { name = "backend", value = "NAME", values = sorted_keys(backends),
  help = "host or cuda (default: cuda if a GPU can be used, else host)" }

common_options.options = {
  { name = "config", short = "f", value = "FILE", required = true,
    values = description.shipped, help = description.HELP },
  { name = "tp", short = "p", value = "N", type = "whole", least = 2,
    most = common_options.MOST_RANKS,
    help = "number of ranks, 2 to 16 (default: one for each core or GPU, 2 to 8)" },
  { name = "steps", value = "N", type = "whole", most = MOST_STEPS,
    help = "measured steps (default: the workload's, 20)" },
  { name = "warm-up", value = "N", type = "whole", least = 0, most = MOST_STEPS,
    help = "steps before the measured ones (default: the workload's, 3)" },
  { name = "wait", value = "HOW", one_of = { "futex", "yield", "spin" }, default = "futex",
    help = "how communication threads wait: futex, yield or spin" },
  { name = "transport", value = "NAME", values = { "builtin", "mpi", "nccl" },
    help = "how data moves: builtin (shared memory) or mpi (its non-blocking collectives); on GPUs nccl,"
      .. " or builtin: gentables' kernels, with all ranks on one GPU" },
  common_options.BACKEND,
  { name = "launcher", trusted = true, value = "COMMAND",
    help = "command that starts ranks, with {ranks} (default: GENTABLES_LAUNCHER, else mpirun)" },
  { name = "bench", trusted = true, value = "PROGRAM",
    help = "workload program (default: the gentables-workload beside gentables)" },
  { name = "timeout", value = "SECONDS", type = "number", above = 0, most = 1e9,
    default = 120, help = "stall timeout of the ranks" },
}

-- `more`: the rest of the message.
local function whole(text, option, least, most, more)
  local number = numbers.whole(text, least, most)
  if not number then
    fail.input("--%s: %s is impossible; a whole number from %d to %d is required%s", option, text, least,
      most, more or "")
  end
  return number
end

local function one_of(name, option, known)
  if known[name] then return name end
  fail.input("--%s: there is no %s%s; valid: %s", option, name,
    texts.did_you_mean(name, sorted_keys(known)), table.concat(sorted_keys(known), " or "))
end

-- The end of the message about too many channels or threads on the host: GPUs allow more. `no_gpu`: the
-- reason for the host, if no option required it.
local function of_gpus(option, backend, no_gpu)
  if backend ~= backends.host then return nil end
  return (" on the host%s (--backend cuda takes up to %d)"):format(
    no_gpu and (" because no GPU can be used: %s"):format(no_gpu) or "", backends.cuda[option])
end

-- "1,2,4", or a list of texts -> { 1, 2, 4 }, each once, in their order.
local function counts(text, option, backend, no_gpu)
  local out = {}
  text = type(text) == "table" and table.concat(text, ",") or text
  for word in (text .. ","):gmatch("([^,]*),") do
    if word == "" then
      fail.input("--%s: %q has an empty entry; whole numbers from 1 to %d, with a comma between two of them,"
        .. " are required%s", option, text, backend[option], of_gpus(option, backend, no_gpu) or "")
    end
    out[#out + 1] = whole(word, option, 1, backend[option], of_gpus(option, backend, no_gpu))
  end
  return sequences.distinct(out)
end

function common_options.backend(text) return one_of(text, "backend", backends) end

-- The only backend that has a transport; nil: several have it, or none.
local function backend_of(transport)
  local found
  for name, backend in pairs(backends) do
    if lists.contains(backend.transports, transport) then
      if found then return nil end
      found = name
    end
  end
  return found
end

-- The decision for GPUs, in words. NCCL makes no communicator of several ranks on one GPU; our kernels run
-- all ranks there. `why`: the reason why other GPUs cannot be used.
local function decide_gpus(args, why)
  if args.gpus == 1 then args.transport = args.transport or "builtin" end
  local where = ("%d GPUs are usable"):format(args.gpus)
  if args.transport == "builtin" then
    where = ("all ranks on one GPU, by --transport builtin%s"):format(why and ("; " .. why) or "")
  end
  return ("cuda: %s; --backend host selects the host"):format(where)
end

-- Decides the backend, before anything else is read: args.backend becomes a name, and args.gpus the number of
-- usable GPUs, if the decision depends on it. `begun`: the settings of a sweep that is resumed. Returns the
-- decisions that no option required, in words; nil: none.
function common_options.settle(args, begun)
  args.backend = args.backend or (not begun and backend_of(args.transport)) or nil
  if args.backend then
    common_options.backend(args.backend)
    if args.backend == "cuda" and not args.tp then args.gpus = configuration.gpus(args.bench) end
    return nil
  end
  local why
  if not begun or begun.backend == "cuda" then args.gpus, why = configuration.gpus(args.bench) end
  if begun then
    args.backend, args.transport = begun.backend, args.transport or begun.transport
    return begun.backend .. ": this sweep was begun on it"
  end
  args.backend = args.gpus > 0 and "cuda" or "host"
  if args.gpus > 0 then return decide_gpus(args, why) end
  args.no_gpu = why
  return "host: no GPU can be used: " .. why
end

-- The channels and the threads of the options; `kind`: sweep or run.
function common_options.counts(args, kind)
  local backend = backends[args.backend]
  return counts(args.channels or backend[kind].channels, "channels", backend, args.no_gpu),
    counts(args.threads or backend[kind].threads, "threads", backend, args.no_gpu)
end

local function transport_of(args)
  local names = backends[args.backend].transports
  return one_of(args.transport or names[1], "transport", sequences.set(names))
end

-- One for each core, or for each GPU that can be used.
local function default_ranks(args)
  local is_of_gpus = args.backend == "cuda" and (args.gpus or 0) > 0
  return math.max(2, math.min(8, is_of_gpus and args.gpus or workers.jobs()))
end

-- The measurement of the options, without channels and threads; after common_options.settle.
function common_options.read(args)
  local workload = description.load(args.config)
  local ranks = args.tp or default_ranks(args)
  local program, identity = configuration.identify(args.bench)
  return { workload = workload, ranks = ranks, program = program, identity = identity,
    text = steps.text(steps.of(workload, ranks, args.backend)),
    steps = args.steps or workload.steps,
    warm_up = args.warm_up or workload.warm_up,
    wait = args.wait, transport = transport_of(args), backend = args.backend,
    launcher = args.launcher or os.getenv("GENTABLES_LAUNCHER"), patience = args.timeout }
end

-- The options of configuration.measure for one configuration.
function common_options.measurement(job, channels, threads, more)
  local options = sequences.pick(job, { "program", "launcher", "ranks", "text", "steps", "warm_up", "wait",
    "transport", "backend", "patience" })
  options.channels, options.threads = channels, threads
  for name, value in pairs(more or {}) do options[name] = value end
  return options
end

return common_options
