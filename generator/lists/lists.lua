-- Data types, fusions, operations, modes, strategies and archs, each in one list. The bench's C enums, help,
-- tables and documentation are rendered from these lists.
--
-- How to add a strategy on CPUs: the file bench/host/strategies/SOURCE.c with `const struct strategy
-- strategy_SOURCE` (bench/elements/strategy.h), and a row in `strategies`. The test every_strategy_is_right
-- compares its sums for each dtype, fusion and shape. Unless the row is `optional`, sweeps without a list of
-- strategies measure it, and the rows in tables/ are to be measured again.
--
-- How to add a strategy on GPUs: the file bench/cuda/kernels/KERNEL.h with the device function KERNEL<Type,
-- accumulate, tp, Fusion> (twoshot.h is a short example), and a row in `strategies` with a `cuda` that
-- describes it. The tests run all its cases on a CPU.
--
-- Columns of rows are in lists/columns.lua, formats in formats/list.lua.
local communication = require "lists.communication"
local ordering = require "base.ordering"
local sequences = require "base.sequences"

local lists = {}

-- The maximum of ranks, and of those on one node: kernels for GPUs are rendered for each number of these.
lists.most_ranks, lists.most_ranks_per_node = 512, 16

-- `bytes` per element; `significand_bits` count the leading one; `aliases` are read in specs and rows,
-- and never written.
lists.dtypes = {
  { name = "bfloat16", short = "bf16", bytes = 2, significand_bits = 8, aliases = { "bf16" } },
  { name = "float16", short = "fp16", bytes = 2, significand_bits = 11, aliases = { "fp16", "half" } },
  { name = "float32", short = "fp32", bytes = 4, significand_bits = 24, aliases = { "fp32", "float" } },
}

-- The epilogue. `short`: its file bench/fusions/SHORT.h, and in the names of its kernels. `trtllm`: the index
-- in TensorRT-LLM's table; absent: not in it. `quantises`: the fusion with the result that it rounds further,
-- so that results that differ there may have equal bits here. `code_bits` of each element of its result;
-- absent: elements have the call's data type. `block`: consecutive elements of a row that share a scale of
-- one byte; absent: no scales. `scale`: of calls of the bench. `sm`: the SM version from which GPUs have
-- instructions for it. `result`: for authors of plug-ins.
--
-- How to add a fusion that rounds the results of RMSNorm further: the file bench/fusions/SHORT.h with its
-- arithmetic for CPUs, for GPUs and for the check in float64 (fp8.h is a short example), and a row at the end
-- of this list. The tests compare its results for each strategy, data type and shape. The committed tables
-- and plugin.h have its number; the failing tests print the commands that write them. Another norm than
-- RMSNorm also needs code in bench/cuda/kernels/epilogue.h (finish_token), bench/calls/check_kernels.c
-- (check_norm) and templates/bench/cuda_helpers.cu.tmpl.
lists.fusions = {
  { name = "NONE", short = "none", trtllm = 0 },
  { name = "RESIDUAL_RMS_NORM", short = "rms_norm", trtllm = 1,
    result = "r = sum + residual_in; norm_out = r / rms(r) * norm_weight" },
  { name = "RESIDUAL_RMS_NORM_QUANT_FP8", short = "fp8", trtllm = 2, quantises = "RESIDUAL_RMS_NORM",
    code_bits = 8, scale = 1 / 128, -- with it a few elements of the bench's data saturate
    result = "norm_out / scale in e4m3, to quant_out" },
  { name = "RESIDUAL_RMS_NORM_QUANT_NVFP4", short = "nvfp4", trtllm = 3, quantises = "RESIDUAL_RMS_NORM",
    code_bits = 4, block = 16, scale = 128, sm = 100,
    result = "e2m1 codes to quant_out, swizzled block scales to scale_out" },
}

-- The fusions but NONE: those with a file. `class`: the name of their class for GPUs.
lists.epilogues = {}
for _, fusion in ipairs(lists.fusions) do
  fusion.class = ("_" .. fusion.short):gsub("_(%w)", string.upper)
  if fusion.name ~= "NONE" then table.insert(lists.epilogues, fusion) end
end

-- The name for all SM versions of a folder, in addition to the archs of lists.archs.
lists.all_archs = { name = "all", scope = "all" }

-- The cells of TensorRT-LLM's table.
lists.trtllm_grid = {
  tp = { 2, 4, 8 },
  hidden_sizes = { 128, 256, 512, 1024, 2048, 4096, 8192 },
  num_tokens = { 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384 },
}

local bus_factors = communication.bus_factors

-- `measured_by`: the backends that can time it. `bus_factor`: busbw / algbw by the number of ranks, as in
-- nccl-tests; absent: not defined. `aliases`: other names, PyTorch's among them. `sums`: results are sums,
-- and rounded; results of other ops are the bits that were sent. `splits`: shares are uneven, and rows have
-- their weights. `ompi`: the NAME in Open MPI's variable coll_tuned_NAME_algorithm.
lists.ops = {
  { name = "allreduce", measured_by = { "host", "cuda" }, sums = true, ompi = "allreduce",
    aliases = { "all_reduce", "all_reduce_" },
    bus_factor = bus_factors.AllReduce },
  { name = "gemm_allreduce" },
  { name = "allgather", measured_by = { "host", "cuda" }, bus_factor = bus_factors.AllGather,
    ompi = "allgather",
    aliases = { "all_gather", "all_gather_into_tensor", "all_gather_into_tensor_out", "_allgather_base",
      "_all_gather_base" } },
  { name = "reducescatter", measured_by = { "host", "cuda" }, bus_factor = bus_factors.ReduceScatter,
    sums = true, ompi = "reduce_scatter_block",
    aliases = { "reduce_scatter", "reduce_scatter_tensor", "reduce_scatter_tensor_out",
      "_reduce_scatter_base" } },
  { name = "alltoall", measured_by = { "host", "cuda" }, bus_factor = bus_factors.AllToAll,
    ompi = "alltoall", aliases = { "all_to_all", "all_to_all_single", "alltoall_base" } },
  { name = "alltoallv", measured_by = { "host", "cuda" }, bus_factor = bus_factors.AllToAll,
    ompi = "alltoallv", splits = true },
  { name = "broadcast", measured_by = { "host", "cuda" }, bus_factor = bus_factors.Broadcast,
    ompi = "bcast",
    aliases = { "bcast", "broadcast_" } },
}

-- How calls are made. Rows of other tools have no mode; it is read as `unknown`.
lists.modes = {
  { name = "eager", measured_by = { "host", "cuda" } },
  { name = "graph", measured_by = { "cuda" } },
  { name = "cold", measured_by = { "cuda" } }, -- eager, and caches are flushed before each call
  { name = "cold_graph", measured_by = { "cuda" } }, -- graph, with caches flushed likewise
  { name = "unknown" },
}

-- The default of a spec's `table`: the rows for formats that have no axes for these.
lists.default_table = { dtype = "bfloat16", op = "allreduce", mode = "eager" }

-- `dedicated`: every rank has a core, or a GPU, of its own.
lists.placements = {
  { name = "dedicated" },
  { name = "oversubscribed" },
  { name = "loopback" },
  { name = "unknown" },
}

-- How a strategy rounds its sum: at every step, in the data type (native), or once at the end (fp32). Rows of
-- other tools have no value.
lists.accumulates = {
  { name = "native" },
  { name = "fp32" },
}

-- A row of lists.strategies for an algorithm or a component of Open MPI.
local function open_mpi(row)
  row.backend, row.source, row.accumulate, row.hatched = "host", "mpi", "native", true
  return row
end

--   backend          "host" or "cuda"; absent: only rows of other tools have it
--   source           of a host strategy: its file in bench/host/strategies
--   cuda             how a GPU runs it: `kernel` of bench/cuda, with `epilogue` = "one" kernel or "separate"
--                    if the kernel does not include it; or `nccl` = { symmetric, separate }; or `auto`, a
--                    call of another strategy; and `needs`, the required hardware and libraries, as text.
--                    The first row of a kernel describes it:
--     links          messages that leave each GPU over its links in an allreduce, or arrive there, whichever
--                    are more, by the number of ranks: stores into the memory of other GPUs, and reads of it
--     messages       the size of its workspace on each rank, in messages: a C expression of `ranks`
--     starts_empty   its workspace begins with empty slots, else with zeros
--     slices         each rank reduces a slice of the tokens
--     multicast      it needs multicast
--     switch         the switch adds: it needs multicast, sums in fp32 alone, and bits may vary
--     file           in bench/cuda/kernels, if it is not KERNEL.h
--   ops              the operations that it does; absent: an allreduce
--   accumulate       how the sum is rounded, a name of lists.accumulates
--   optional         a sweep measures it only if the spec names it
--   span             "node": its ranks must be on one node; "nodes": on several; absent: either. Other sweeps
--                    measure it only if the spec names it
--   candidate        false: a table never chooses it
--   trtllm           the number in TensorRT-LLM's AllReduceStrategyType; absent: it has none
--   ompi_algorithm   the number in Open MPI's coll/tuned for an allreduce; `ompi_algorithms`: for other ops
--   ompi_component   another coll component of Open MPI
--   mpich_algorithm  MPICH's name; `own_operations`: it supports only the predefined operations of MPI
--   mark, colour, hatched  in pictures and pages: one or two letters, unique; a colour; with white lines.
--                    Colours with the same hatch differ for colour-blind people, too, if some op has both.
--
-- A strategy on NCCL's device API (2.28: own kernels on NCCL's windows) would be a row with `cuda` = {
-- device = "oneshot", needs = "NCCL 2.28 with device communicators" }, its candidates beside
-- CUDA_NCCL_CANDIDATES in templates/bench/lists.h.tmpl, and bench/cuda/nccl_device.c with its struct of
-- functions, which makes a communicator (communicator.h) with a window, and then calls ncclDevCommCreate. Its
-- kernel finds the slots and flags of other ranks by ncclGetLsaPointer, and those of the switch by
-- ncclGetLsaMultimemPointer.
lists.strategies = {
  { name = "MPI", backend = "host", source = "mpi", accumulate = "native",
    ops = { "allreduce", "allgather", "reducescatter", "alltoall", "alltoallv", "broadcast" },
    mark = "M", colour = "#4d4d4d",
    help = "MPI's own call, as the library decides" },
  { name = "ONESHOT", backend = "host", source = "oneshot", accumulate = "fp32", trtllm = 4, span = "node",
    cuda = { kernel = "oneshot", messages = "ROTATION * ranks", starts_empty = true,
      links = function(ranks) return ranks - 1 end, needs = "P2P" },
    mark = "1S", colour = "#e69f00",
    help = "every rank reads every other rank's message and reduces all of it" },
  { name = "TWOSHOT", backend = "host", source = "twoshot", accumulate = "fp32", trtllm = 5, span = "node",
    -- The others read their slices of its message, and it stores the sum of its slice to them: the minimum
    -- of an allreduce without a switch that adds.
    cuda = { kernel = "twoshot", messages = "2", slices = true,
      links = bus_factors.AllReduce, needs = "P2P, tokens >= TP" },
    mark = "2S", colour = "#0072b2",
    help = "every rank reduces its slice, then gathers the others'" },
  { name = "TWOSHOT_DIVIDED", backend = "host", source = "twoshot_divided", accumulate = "fp32",
    span = "node", mark = "2D", colour = "#6699cc",
    help = "every rank finishes its own tokens, and gathers the others' results" },
  { name = "DIRECT", backend = "host", source = "direct", accumulate = "fp32", span = "node",
    ops = { "allgather", "reducescatter", "alltoall", "alltoallv", "broadcast" },
    mark = "D", colour = "#cc79a7",
    help = "every rank reads its parts from the shared memory of all other ranks" },
  { name = "TWOLEVEL", backend = "host", source = "twolevel", accumulate = "native", span = "nodes",
    mark = "TL", colour = "#009e73",
    help = "sums within each node over shared memory; the leaders of nodes exchange them" },
  { name = "TWOLEVEL_SHARDED", backend = "host", source = "twolevel_sharded", accumulate = "native",
    span = "nodes", mark = "TS", colour = "#661100",
    help = "sums within each node over shared memory; every rank exchanges its share with other nodes" },
  { name = "TWOLEVEL_NUMA", backend = "host", source = "twolevel_numa", accumulate = "native", span = "node",
    mark = "TN", colour = "#999933", help = "sums within each NUMA node, then over those of one node" },
  open_mpi { name = "MPI_BASIC_LINEAR", ompi_algorithm = 1, mark = "BL", colour = "#009e73",
    ops = { "allreduce", "allgather", "reducescatter", "alltoall", "alltoallv", "broadcast" },
    ompi_algorithms = { allgather = 1, reducescatter = 1, alltoall = 1, alltoallv = 1, broadcast = 1 },
    help = "Open MPI, coll/tuned: reduce to rank 0, then broadcast" },
  open_mpi { name = "MPI_NONOVERLAPPING", ompi_algorithm = 2, mark = "NO", colour = "#882255",
    help = "Open MPI, coll/tuned: tuned reduce, then tuned broadcast" },
  open_mpi { name = "MPI_RECURSIVE_DOUBLING", ompi_algorithm = 3, mark = "RD", colour = "#56b4e9",
    ops = { "allreduce", "allgather", "reducescatter" },
    ompi_algorithms = { allgather = 3, reducescatter = 2 },
    help = "Open MPI, coll/tuned: log2(TP) exchanges of the whole message" },
  open_mpi { name = "MPI_RING", ompi_algorithm = 4, mark = "RI", colour = "#d55e00",
    ops = { "allreduce", "allgather" }, ompi_algorithms = { allgather = 4 },
    help = "Open MPI, coll/tuned: reduce-scatter and allgather around a ring" },
  open_mpi { name = "MPI_SEGMENTED_RING", ompi_algorithm = 5, mark = "SR", colour = "#ddcc77",
    help = "Open MPI, coll/tuned: the ring in segments" },
  open_mpi { name = "MPI_RABENSEIFNER", ompi_algorithm = 6, mark = "RB", colour = "#999933",
    help = "Open MPI, coll/tuned: recursive halving, then doubling" },
  open_mpi { name = "MPI_SM", ompi_component = "sm", span = "node", mark = "SM", colour = "#aa4499",
    ops = { "allreduce", "broadcast" },
    help = "Open MPI, coll/sm: the shared-memory component" },
  open_mpi { name = "MPI_BRUCK", mark = "BR", colour = "#ddcc77",
    ops = { "allgather", "alltoall" }, ompi_algorithms = { allgather = 2, alltoall = 3 },
    help = "Open MPI, coll/tuned: log2(TP) exchanges of ever larger messages" },
  open_mpi { name = "MPI_PAIRWISE", mark = "PW", colour = "#999933",
    ops = { "alltoall", "alltoallv" }, ompi_algorithms = { alltoall = 2, alltoallv = 2 },
    help = "Open MPI, coll/tuned: one pair of ranks after another" },
  open_mpi { name = "MPI_RECURSIVE_HALVING", mark = "RH", colour = "#999933",
    ops = { "reducescatter" }, ompi_algorithms = { reducescatter = 3 },
    help = "Open MPI, coll/tuned: log2(TP) exchanges of ever smaller messages" },
  open_mpi { name = "MPI_PIPELINE", mark = "PL", colour = "#ddcc77",
    ops = { "broadcast" }, ompi_algorithms = { broadcast = 3 },
    help = "Open MPI, coll/tuned: segments from one rank to the next" },
  open_mpi { name = "MPI_BINOMIAL", mark = "BI", colour = "#882255",
    ops = { "broadcast" }, ompi_algorithms = { broadcast = 6 },
    help = "Open MPI, coll/tuned: down a binomial tree" },
  open_mpi { name = "MPI_HAN", ompi_component = "han", span = "nodes", mark = "HA", colour = "#332288",
    ops = { "allreduce", "allgather", "broadcast" },
    help = "Open MPI, coll/han: one level within the nodes, one between them" },
  open_mpi { name = "MPI_ADAPT", ompi_component = "adapt", span = "nodes", mark = "AD", colour = "#e69f00",
    ops = { "broadcast" },
    help = "Open MPI, coll/adapt: segments down a tree, driven by events" },
  { name = "MPICH_RECURSIVE_DOUBLING", backend = "host", source = "mpi", accumulate = "native",
    optional = true,
    mpich_algorithm = "recursive_doubling",
    mark = "HR", colour = "#56b4e9",
    help = "MPICH: log2(TP) exchanges of the whole message" },
  { name = "MPICH_REDUCE_SCATTER_ALLGATHER", backend = "host", source = "mpi_own", accumulate = "native",
    optional = true,
    mpich_algorithm = "reduce_scatter_allgather", own_operations = true,
    mark = "HG", colour = "#999933",
    help = "MPICH: recursive halving, then doubling; float32, for it takes MPI's own operations only" },
  { name = "ONESHOT_NATIVE", backend = "cuda", accumulate = "native",
    cuda = { kernel = "oneshot", needs = "P2P" },
    mark = "1N", colour = "#e69f00", hatched = true,
    help = "ONESHOT that rounds to the data type at every step" },
  { name = "TWOSHOT_NATIVE", backend = "cuda", accumulate = "native",
    cuda = { kernel = "twoshot", needs = "P2P, tokens >= TP" },
    mark = "2N", colour = "#0072b2", hatched = true,
    help = "TWOSHOT that rounds to the data type at every step" },
  { name = "ONESHOT_EPILOGUE", backend = "cuda", accumulate = "fp32", optional = true,
    cuda = { kernel = "oneshot", epilogue = "one", needs = "P2P" },
    mark = "1E", colour = "#d55e00", hatched = true,
    help = "ONESHOT, then one kernel for the epilogue: shows the gain of fusion" },
  { name = "ONESHOT_UNFUSED", backend = "cuda", accumulate = "fp32", optional = true,
    cuda = { kernel = "oneshot", epilogue = "separate", needs = "P2P" },
    mark = "1U", colour = "#999933", hatched = true,
    help = "ONESHOT, then kernels that add, normalise and quantise" },
  { name = "ONESHOT_MULTICAST", backend = "cuda", accumulate = "fp32",
    -- multimem.st makes the switch store the message to all GPUs of the team, the sender included (PTX ISA,
    -- multimem): one message leaves each GPU, N arrive. Derived from the definition of the instruction; not
    -- confirmed by hardware counters.
    cuda = { kernel = "oneshot_multicast", messages = "ROTATION * ranks", starts_empty = true,
      multicast = true, links = function(ranks) return ranks end, needs = "multicast (NVSwitch, SM90)" },
    mark = "1M", colour = "#ddcc77",
    help = "every rank stores its message once, to the memory of all, and reduces all messages itself" },
  { name = "NVLS_ONESHOT", backend = "cuda", accumulate = "fp32",
    -- multimem.ld_reduce makes the switch read the memory of all GPUs of the team, that of the requesting GPU
    -- included, and return the sum (PTX ISA, multimem); N ranks request all of the message. Derived from the
    -- definition of the instructions; not confirmed by hardware counters.
    cuda = { kernel = "nvls_oneshot", file = "nvls", messages = "2", switch = true,
      links = function(ranks) return ranks end, needs = "multicast (NVSwitch, SM90)" },
    mark = "V1", colour = "#009e73", hatched = true,
    help = "every rank has the switch add up all of the message" },
  { name = "NVLS_TWOSHOT", backend = "cuda", accumulate = "fp32",
    -- Each rank requests its slice, and stores the sum once to the switch, which distributes it.
    cuda = { kernel = "nvls_twoshot", file = "nvls", messages = "2", slices = true, switch = true,
      links = function(ranks) return 1 + 1 / ranks end, needs = "multicast (NVSwitch, SM90), tokens >= TP" },
    mark = "V2", colour = "#cc79a7", hatched = true,
    help = "every rank has the switch add up its slice, and stores that to all" },
  { name = "NCCL", backend = "cuda", accumulate = "native", trtllm = 0,
    cuda = { nccl = {}, needs = "NCCL" },
    ops = { "allreduce", "allgather", "reducescatter", "alltoall", "alltoallv", "broadcast" },
    mark = "N", colour = "#3f1a5f",
    help = "NCCL's own call (grouped sends and receives for an alltoall), then one kernel for the epilogue" },
  { name = "NCCL_UNFUSED", backend = "cuda", accumulate = "native",
    cuda = { nccl = { separate = true }, needs = "NCCL" },
    mark = "N3", colour = "#3f1a5f", hatched = true,
    help = "ncclAllReduce, then kernels that add, normalise and quantise" },
  { name = "MIN_LATENCY", trtllm = 1,
    mark = "ML", colour = "#009e73",
    help = "TensorRT-LLM: ONESHOT or TWOSHOT by size" },
  { name = "UB", trtllm = 2,
    mark = "UB", colour = "#882255",
    help = "TensorRT-LLM: user buffers" },
  { name = "AUTO", backend = "host", source = "auto", accumulate = "native", trtllm = 3, candidate = false,
    optional = true, span = "node", -- the lookup has no nodes
    cuda = { auto = true, needs = "an earlier table" },
    mark = "A", colour = "#bbbbbb",
    help = "the call through the lookup of an earlier table; never a winner" },
  { name = "LOWPRECISION", trtllm = 6,
    mark = "LP", colour = "#d55e00",
    help = "TensorRT-LLM: low precision" },
  { name = "MNNVL", trtllm = 7,
    mark = "MN", colour = "#56b4e9",
    help = "TensorRT-LLM: multi-node NVLink" },
  { name = "NCCL_SYMMETRIC", backend = "cuda", accumulate = "native", trtllm = 8,
    cuda = { nccl = { symmetric = true }, needs = "NCCL 2.27 with symmetric windows" },
    mark = "NS", colour = "#cc79a7",
    help = "ncclAllReduce on registered symmetric memory" },
  { name = "SYMM_MEM",
    mark = "SY", colour = "#999933",
    help = "PyTorch symmetric memory" },
}

lists.nccl = require "lists.nccl"

local function add_nccl_strategies()
sequences.append(lists.strategies, require "lists.ucc")
  local nccl, colour = lists.nccl, 0
  for _, algorithm in ipairs(nccl.algorithms) do
    for _, protocol_name in ipairs(algorithm.protocols) do
      local protocol = nccl.protocols[protocol_name]
      local name = ("NCCL_%s_%s"):format(algorithm.name, protocol_name)
      colour = colour + 1
      for i = 0, #nccl.channels do
        local channels = nccl.channels[i]
        lists.strategies[#lists.strategies + 1] = {
          name = channels and ("%s_%dCH"):format(name, channels) or name,
          backend = "cuda", accumulate = "native", optional = true,
          cuda = { nccl = {}, needs = "NCCL" },
          nccl = { algorithm = algorithm.tuner, protocol = protocol.tuner, channels = channels },
          mark = algorithm.mark .. protocol.mark, colour = nccl.colours[colour], hatched = true,
          help = "NCCL: this algorithm, protocol and number of channels",
        }
      end
    end
  end
end
add_nccl_strategies()

-- The prefix of plug-ins' candidates in rows and tables, before the candidate's own name. They cannot be
-- listed here: they join the strategies when a file or a measurement first names one. A table may choose
-- them.
lists.plugin_prefix = "PLUGIN_"

-- Adds a candidate of a plug-in by its name in rows, and returns the name. Mark and colour follow from the
-- number of such candidates.
function lists.add_plugin(name)
  local number, colours = 1, lists.nccl.colours
  for _, row in ipairs(lists.strategies) do
    if row.plugin then number = number + 1 end
  end
  table.insert(lists.strategies, { name = name, plugin = true, optional = true, mark = "p" .. number,
    colour = colours[(number - 1) % #colours + 1], hatched = true, help = "a candidate of a plug-in" })
  return name
end

-- The archs of tables; the first matching pattern counts. `backend`: the one that measures for it.
-- `fallback`: the strategy of lookups for unmeasured cells. `sm`: TensorRT-LLM's tables can be made for it.
-- `rccl`: RCCL runs there in the place of NCCL.
lists.archs = {
  { pattern = "^host$", backend = "host", fallback = "MPI" },
  { pattern = "^host%-[%w_.]+$", backend = "host", fallback = "MPI" },
  { pattern = "^sm%d+$", backend = "cuda", fallback = "NCCL_SYMMETRIC", sm = true },
  { pattern = "^sm%d+%-loopback$", backend = "cuda", fallback = "NCCL_SYMMETRIC" },
  { pattern = "^gfx%x+$", backend = "cuda", fallback = "NCCL", rccl = true }, -- AMD: rows of other tools
  { pattern = "^gpu$", backend = "cuda", fallback = "NCCL_SYMMETRIC" }, -- becomes the GPU's SM version
  { pattern = "^gpu%-loopback$", backend = "cuda", fallback = "NCCL_SYMMETRIC" },
}

-- Whether a list, of any kind, has this value.
function lists.contains(list, wanted)
  return sequences.any(list, function(value) return value == wanted end)
end

local found = {} -- kind -> name or alias -> row

-- Removes the strategies after the first `count`: candidates of plug-ins in a file that is refused.
function lists.drop_plugins(count)
  for i = #lists.strategies, count + 1, -1 do lists.strategies[i] = nil end
  found.strategies = nil
end

local function search(kind, name)
  return sequences.find(lists[kind], function(row)
    return row.name == name or lists.contains(row.aliases or {}, name)
  end)
end

-- The row of lists[kind] with this name or alias, or nil.
function lists.find(kind, name)
  local known = found[kind] or {}
  local row = known[name] or search(kind, name)
  if row then found[kind], known[name] = known, row end
  return row
end

-- Whether lists[kind] has a row of this name, which may be nil. An alias is no name.
function lists.has(kind, name)
  local row = lists.find(kind, name)
  return row ~= nil and row.name == name
end

-- The strategy with this algorithm and protocol, in lower case as in files of NCCL's tuner, and this number
-- of channels (nil: chosen by NCCL); nil if there is none.
function lists.nccl_strategy(algorithm, protocol, channels)
  return sequences.find(lists.strategies, function(row)
    local nccl = row.nccl
    return nccl and nccl.algorithm == algorithm and nccl.protocol == protocol and nccl.channels == channels
  end)
end

-- The names of lists[kind], in order.
function lists.names(kind)
  return sequences.field(lists[kind], "name")
end

-- TensorRT-LLM's number -> the name of a strategy.
function lists.trtllm_strategies()
  local names = {}
  for _, row in ipairs(lists.strategies) do
    if row.trtllm then names[row.trtllm] = row.name end
  end
  return names
end

-- The rows of TensorRT-LLM's fusions, in the order of its numbers.
function lists.trtllm_fusions()
  local fusions = sequences.filter(lists.fusions, function(row) return row.trtllm end)
  return ordering.sort(fusions, ordering.by "trtllm")
end

-- Whether a strategy does this op.
function lists.does(strategy, op)
  if strategy.ops then return lists.contains(strategy.ops, op) end
  return op == "allreduce" or op == "gemm_allreduce"
end

-- Whether a table may choose the strategy of this name.
function lists.may_win(name) return lists.find("strategies", name).candidate ~= false end

-- Whether a backend runs the strategy of this row.
function lists.runs_on(row, backend)
  return row.backend == backend or backend == "cuda" and row.cuda ~= nil
end

-- Whether a strategy runs on ranks of so many nodes.
function lists.spans(row, nodes) return not row.span or (row.span == "nodes") == (nodes > 1) end

local function spans_any(row, counts)
  return sequences.any(counts, function(nodes) return lists.spans(row, nodes) end)
end

-- The names of the strategies that a backend runs, in order. `usual`: without optional ones, and those that
-- run on none of these numbers of nodes (nil: { 1 }). `op`: only those that do it.
function lists.strategies_of(backend, usual, op, nodes)
  return sequences.field(sequences.filter(lists.strategies, function(row)
    local left_out = usual and (row.optional or not spans_any(row, nodes or { 1 }))
      or op and not lists.does(row, op)
    return lists.runs_on(row, backend) and not left_out
  end), "name")
end

-- The row of `archs` for an arch, or nil.
function lists.arch(name)
  return sequences.find(lists.archs, function(row) return name:find(row.pattern) end)
end

-- The kernels of bench/cuda: the `cuda` of the rows that describe one, with its strategy's name, and the ways
-- in which strategies let it `accumulate`. `kernel_files`: their files in bench/cuda/kernels.
lists.kernels, lists.kernel_files = {}, {}
for _, row in ipairs(lists.strategies) do
  local cuda = row.cuda
  if cuda and cuda.links then
    cuda.name, cuda.accumulates = row.name, {}
    cuda.multicast = cuda.multicast or cuda.switch
    lists.kernels[#lists.kernels + 1] = cuda
    lists.kernels[cuda.kernel] = cuda
    local header = (cuda.file or cuda.kernel) .. ".h"
    if not lists.contains(lists.kernel_files, header) then table.insert(lists.kernel_files, header) end
  end
  if cuda and cuda.kernel and not lists.contains(lists.kernels[cuda.kernel].accumulates, row.accumulate) then
    table.insert(lists.kernels[cuda.kernel].accumulates, row.accumulate)
  end
end

return lists
