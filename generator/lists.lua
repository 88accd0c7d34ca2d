-- The lists that everything else is made from: data types, fusions, operations, strategies, archs. They
-- stand here and nowhere else; the bench's C enums, help, tables and documentation are rendered from them.
--
-- How to add a strategy: a row in `strategies` (for a host strategy also the file bench/host/SOURCE.c with
-- `const struct strategy strategy_SOURCE`; see bench/strategy.h). How to add a format: formats.lua.
local lists = {}

-- `bytes` per element; `aliases` are read in specs and rows, and never written.
lists.dtypes = {
  { name = "bfloat16", short = "bf16", bytes = 2, aliases = { "bf16" } },
  { name = "float16", short = "fp16", bytes = 2, aliases = { "fp16", "half" } },
  { name = "float32", short = "fp32", bytes = 4, aliases = { "fp32", "float" } },
}

-- The epilogue. `trtllm` is the index in TensorRT-LLM's table.
lists.fusions = {
  { name = "NONE", trtllm = 0 },
  { name = "RESIDUAL_RMS_NORM", trtllm = 1 },
  { name = "RESIDUAL_RMS_NORM_QUANT_FP8", trtllm = 2 },
  { name = "RESIDUAL_RMS_NORM_QUANT_NVFP4", trtllm = 3 },
}

-- `measured_by`: the backends that can time it. `bus_factor`: busbw / algbw by the number of ranks, as
-- nccl-tests has it; absent: there is no such thing.
lists.ops = {
  { name = "allreduce", measured_by = { "host" },
    bus_factor = function(ranks) return 2 * (ranks - 1) / ranks end },
  { name = "gemm_allreduce" },
}

-- How a call was made. Rows of other tools do not say; theirs is `unknown`.
lists.modes = {
  { name = "eager", measured_by = { "host" } },
  { name = "graph" },
  { name = "unknown" },
}

-- Whether every rank had a core, or a GPU, of its own.
lists.placements = {
  { name = "dedicated" },
  { name = "oversubscribed" },
  { name = "loopback" },
  { name = "unknown" },
}

-- How a strategy rounds its sum: at every step in the data type, or once at the end. Rows of other tools do
-- not say.
lists.accumulates = {
  { name = "native" },
  { name = "fp32" },
}

-- `backend`: who runs it ("host", "cuda"; none: known from rows of other tools only). `candidate = false`:
-- never a winner. `trtllm`: the number in TensorRT-LLM's AllReduceStrategyType; absent: TensorRT-LLM cannot
-- name it. `ompi_algorithm`: the number in Open MPI's coll/tuned; `ompi_component`: another coll component;
-- `mpich_algorithm`: MPICH's name; `own_operations`: only for MPI's own operations. `optional`: a sweep
-- measures it only where the spec names it. `accumulate`: how the sum is rounded. In pictures and pages:
-- `mark`, one or two letters, which tell all apart in print; `colour`; `hatched`: that colour with white
-- lines. Colours of the same hatch differ for colour-blind people, too.
lists.strategies = {
  { name = "MPI", backend = "host", source = "mpi", accumulate = "native",
    mark = "M", colour = "#4d4d4d",
    help = "MPI_Allreduce as the library decides" },
  { name = "ONESHOT", backend = "host", source = "oneshot", accumulate = "fp32", trtllm = 4,
    mark = "1S", colour = "#e69f00",
    help = "every rank reads every other rank's message and reduces all of it" },
  { name = "TWOSHOT", backend = "host", source = "twoshot", accumulate = "fp32", trtllm = 5,
    mark = "2S", colour = "#0072b2",
    help = "every rank reduces its slice, then gathers the others'" },
  { name = "MPI_BASIC_LINEAR", backend = "host", source = "mpi", accumulate = "native", ompi_algorithm = 1,
    mark = "BL", colour = "#009e73", hatched = true,
    help = "Open MPI, coll/tuned: reduce to rank 0, then broadcast" },
  { name = "MPI_NONOVERLAPPING", backend = "host", source = "mpi", accumulate = "native", ompi_algorithm = 2,
    mark = "NO", colour = "#882255", hatched = true,
    help = "Open MPI, coll/tuned: tuned reduce, then tuned broadcast" },
  { name = "MPI_RECURSIVE_DOUBLING", backend = "host", source = "mpi", accumulate = "native",
    ompi_algorithm = 3,
    mark = "RD", colour = "#56b4e9", hatched = true,
    help = "Open MPI, coll/tuned: log2(TP) exchanges of the whole message" },
  { name = "MPI_RING", backend = "host", source = "mpi", accumulate = "native", ompi_algorithm = 4,
    mark = "RI", colour = "#d55e00", hatched = true,
    help = "Open MPI, coll/tuned: reduce-scatter and allgather around a ring" },
  { name = "MPI_SEGMENTED_RING", backend = "host", source = "mpi", accumulate = "native", ompi_algorithm = 5,
    mark = "SR", colour = "#ddcc77", hatched = true,
    help = "Open MPI, coll/tuned: the ring in segments" },
  { name = "MPI_RABENSEIFNER", backend = "host", source = "mpi", accumulate = "native", ompi_algorithm = 6,
    mark = "RB", colour = "#999933", hatched = true,
    help = "Open MPI, coll/tuned: recursive halving, then doubling" },
  { name = "MPI_SM", backend = "host", source = "mpi", accumulate = "native", ompi_component = "sm",
    mark = "SM", colour = "#aa4499", hatched = true,
    help = "Open MPI, coll/sm: the shared-memory component" },
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
  { name = "NCCL", trtllm = 0,
    mark = "N", colour = "#3f1a5f",
    help = "ncclAllReduce" },
  { name = "MIN_LATENCY", trtllm = 1,
    mark = "ML", colour = "#009e73",
    help = "TensorRT-LLM: ONESHOT or TWOSHOT by size" },
  { name = "UB", trtllm = 2,
    mark = "UB", colour = "#882255",
    help = "TensorRT-LLM: user buffers" },
  { name = "AUTO", trtllm = 3, candidate = false,
    mark = "A", colour = "#bbbbbb",
    help = "the call through a lookup; never a winner" },
  { name = "LOWPRECISION", trtllm = 6,
    mark = "LP", colour = "#d55e00",
    help = "TensorRT-LLM: low precision" },
  { name = "MNNVL", trtllm = 7,
    mark = "MN", colour = "#56b4e9",
    help = "TensorRT-LLM: multi-node NVLink" },
  { name = "NCCL_SYMMETRIC", trtllm = 8,
    mark = "NS", colour = "#cc79a7",
    help = "ncclAllReduce on registered symmetric memory" },
  { name = "SYMM_MEM",
    mark = "SY", colour = "#999933",
    help = "PyTorch symmetric memory" },
}

-- NCCL's algorithms and protocols for an allreduce, and channel counts: each combination is a strategy of its
-- own, named such as NCCL_RING_LL128_16CH; without channels (NCCL_RING_LL128) NCCL chose their number itself.
-- `tuner`: the word of a tuner's file. Rows have no other channel counts; how to add one: a number here.
lists.nccl = {
  algorithms = {
    { name = "RING", tuner = "ring", mark = "R", protocols = { "LL", "LL128", "SIMPLE" } },
    { name = "TREE", tuner = "tree", mark = "T", protocols = { "LL", "LL128", "SIMPLE" } },
    { name = "COLLNET_DIRECT", tuner = "collnet_direct", mark = "D", protocols = { "SIMPLE" } },
    { name = "COLLNET_CHAIN", tuner = "collnet_chain", mark = "C", protocols = { "SIMPLE" } },
    { name = "NVLS", tuner = "nvls", mark = "V", protocols = { "SIMPLE" } },
    { name = "NVLS_TREE", tuner = "nvls_tree", mark = "W", protocols = { "SIMPLE" } },
  },
  protocols = {
    LL = { tuner = "ll", mark = "L" },
    LL128 = { tuner = "ll128", mark = "8" },
    SIMPLE = { tuner = "simple", mark = "S" },
  },
  channels = { 1, 2, 4, 6, 8, 10, 12, 16, 20, 24, 32, 48, 64 },
  -- One for each algorithm and protocol; their channel counts look alike.
  colours = { "#009e73", "#56b4e9", "#0072b2", "#e69f00", "#d55e00", "#999933", "#cc79a7", "#882255",
    "#ddcc77", "#4d4d4d" },
}

local function add_nccl_strategies()
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
          nccl = { algorithm = algorithm.tuner, protocol = protocol.tuner, channels = channels },
          mark = algorithm.mark .. protocol.mark, colour = nccl.colours[colour], hatched = true,
          help = "NCCL: this algorithm, protocol and number of channels",
        }
      end
    end
  end
end
add_nccl_strategies()

-- What a search of Open MPI's parameters looks at, by major version: families of settings { base, axes }. A
-- setting is its family's base and one text of each axis: parameters joined by ";", "" where all stay as they
-- are. `component`: another coll component takes all calls, and there is no algorithm to choose. Up to Open
-- MPI 4 the shared-memory transport is called vader, and copies in one go by the mechanism that it names.
--
-- coll/sm passes a message through segments, a fragment per rank each, in as many sets as it has flags for
-- those in use: with more sets ranks wait less for one another. Its control blocks lie a page apart, and its
-- fragments a power of two, unless told: all of them then meet in a few sets of a cache.
function lists.ompi_parameters(major)
  local btl = major >= 5 and "btl_sm" or "btl_vader"
  local copies, eager = { "" }, {}
  for _, most in ipairs { 65536, 262144 } do
    local one_copy = major < 5 and "btl_vader_single_copy_mechanism=none;" or ""
    copies[#copies + 1] = ("%s%s_max_send_size=%d"):format(one_copy, btl, most)
  end
  for i, limit in ipairs { 32768, 65536, 262144 } do eager[i] = ("%s_eager_limit=%d"):format(btl, limit) end
  local fragments = { "coll_sm_fragment_size=16448", "coll_sm_fragment_size=32832",
    "coll_sm_fragment_size=65600" }
  local segments = { "coll_sm_comm_num_segments=32;coll_sm_comm_in_use_flags=8",
    "coll_sm_comm_num_segments=64;coll_sm_comm_in_use_flags=16" }
  return { { axes = { copies, eager } },
    { component = "sm", base = "coll_sm_priority=90;coll_sm_control_size=64",
      axes = { fragments, segments } } }
end

-- What a table is for. The first pattern that matches counts. `backend`: who measures it. `fallback`: what a
-- reader uses where nothing was measured. `sm`: TensorRT-LLM's tables may be made for it.
lists.archs = {
  { pattern = "^host$", backend = "host", fallback = "MPI" },
  { pattern = "^host%-[%w_.]+$", backend = "host", fallback = "MPI" },
  { pattern = "^sm%d+$", backend = "cuda", fallback = "NCCL_SYMMETRIC", sm = true },
  { pattern = "^sm%d+%-loopback$", backend = "cuda", fallback = "NCCL_SYMMETRIC" },
}

-- Whether a list, any, has this value.
function lists.contains(list, wanted)
  for _, value in ipairs(list) do
    if value == wanted then return true end
  end
  return false
end

-- The row of lists[kind] with this name or alias, or nil.
function lists.find(kind, name)
  for _, row in ipairs(lists[kind]) do
    if row.name == name then return row end
    for _, alias in ipairs(row.aliases or {}) do
      if alias == name then return row end
    end
  end
end

-- The strategy of NCCL's words: algorithm and protocol as a tuner's file has them, in small letters; channels
-- nil where NCCL chose them. nil where there is none such.
function lists.nccl_strategy(algorithm, protocol, channels)
  for _, row in ipairs(lists.strategies) do
    local nccl = row.nccl
    if nccl and nccl.algorithm == algorithm and nccl.protocol == protocol and nccl.channels == channels then
      return row
    end
  end
end

-- The names of lists[kind], in order.
function lists.names(kind)
  local names = {}
  for i, row in ipairs(lists[kind]) do names[i] = row.name end
  return names
end

-- The names of the strategies that a backend runs and a table may choose, in order; none: there is no such
-- backend yet. `usual`: without those that are optional.
function lists.strategies_of(backend, usual)
  local names = {}
  for _, row in ipairs(lists.strategies) do
    local left_out = row.candidate == false or usual and row.optional
    if row.backend == backend and not left_out then names[#names + 1] = row.name end
  end
  return names
end

-- The row of `archs` for an arch, or nil where it is none.
function lists.arch(name)
  for _, row in ipairs(lists.archs) do
    if name:find(row.pattern) then return row end
  end
end

return lists
