-- Laws by which the time of an allreduce grows with the number of nodes, in the terms of Hockney's model: a
-- time per message between nodes, and one per byte (fit.lua).
--
-- A law gives, for a number of nodes and of ranks on each:
--   steps    messages between nodes that follow each other
--   volume   bytes that the busiest link carries each way, in messages of the call
-- and may have
--   largest_bytes   no larger message follows it
-- Factors that are equal for all numbers of nodes are left out: the coefficients include them.
--
-- How to add a law: a row in `laws`, and its name in `strategies` below. A strategy without a row there is
-- not predicted.
local growth = {}

local function log2_down(number) return math.floor(math.log(number, 2) + 1e-9) end

local function log2_up(number) return math.ceil(math.log(number, 2) - 1e-9) end

-- The steps between nodes of exchanges over doubling distances; and whether the ranks are no power of two, so
-- that some of them first give their messages to others, and get the sums at the end. If each node has an
-- even number of ranks, both happen within the nodes.
local function doublings(nodes, ranks_per_node)
  local ranks = nodes * ranks_per_node
  local power = log2_down(ranks)
  return power - log2_down(ranks_per_node), ranks_per_node % 2 == 1 and ranks > 1 << power
end

growth.laws = {
  -- Reduce-scatter and allgather around all ranks.
  { name = "ring",
    steps = function(nodes, ranks_per_node) return 2 * (nodes * ranks_per_node - 1) end,
    volume = function(nodes, ranks_per_node)
      local ranks = nodes * ranks_per_node
      return 2 * (ranks - 1) / ranks
    end },
  -- The same in which each node counts as one rank: pieces straight to the node that sums them, and back.
  { name = "pieces",
    steps = function(nodes) return 2 * (nodes - 1) end,
    volume = function(nodes) return 2 * (nodes - 1) / nodes end },
  -- The whole message straight to every other node.
  { name = "whole", largest_bytes = 64 << 10,
    steps = function(nodes) return nodes - 1 end,
    volume = function(nodes) return nodes - 1 end },
  { name = "recursive_doubling",
    steps = function(nodes, ranks_per_node)
      local steps, is_uneven = doublings(nodes, ranks_per_node)
      return steps + (is_uneven and 2 or 0)
    end,
    volume = function(nodes, ranks_per_node)
      local steps, is_uneven = doublings(nodes, ranks_per_node)
      return steps + (is_uneven and 2 or 0)
    end },
  -- Reduce-scatter by recursive halving, then an allgather by doubling (Rabenseifner).
  { name = "halving",
    steps = function(nodes, ranks_per_node)
      local steps, is_uneven = doublings(nodes, ranks_per_node)
      return 2 * steps + (is_uneven and 3 or 0)
    end,
    volume = function(nodes, ranks_per_node)
      local steps, is_uneven = doublings(nodes, ranks_per_node)
      return 2 * (1 - 1 / (1 << steps)) + (is_uneven and 2 or 0)
    end },
  -- All to one rank, which sends the sum to all.
  { name = "linear",
    steps = function(nodes) return 2 * (nodes - 1) end,
    volume = function(nodes) return 2 * (nodes - 1) end },
  -- The same along a binomial tree.
  { name = "tree",
    steps = function(nodes) return 2 * log2_up(nodes) end,
    volume = function(nodes) return 2 * log2_up(nodes) end },
  -- Along a tree, in segments.
  { name = "pipelined_tree",
    steps = function(nodes) return 2 * log2_up(nodes) end,
    volume = function() return 2 end },
}

local any = {}
for i, law in ipairs(growth.laws) do
  any[i], growth.laws[law.name] = law.name, law
end

-- The laws that a strategy may follow; `any`: its algorithm is not known, or the library decides.
growth.strategies = {
  MPI = any,
  MPI_NONOVERLAPPING = any,
  MPI_HAN = any,
  MPI_BASIC_LINEAR = { "linear" },
  MPI_RECURSIVE_DOUBLING = { "recursive_doubling" },
  MPI_RING = { "ring" },
  MPI_SEGMENTED_RING = { "ring" },
  MPI_RABENSEIFNER = { "halving" },
  MPICH_RECURSIVE_DOUBLING = { "recursive_doubling" },
  MPICH_REDUCE_SCATTER_ALLGATHER = { "halving" },
  TWOLEVEL = { "pieces", "whole" },
  TWOLEVEL_SHARDED = { "pieces", "whole" },
  NCCL = any,
  NCCL_SYMMETRIC = any,
}

-- Those of NCCL's algorithms, by their word in its tuner.
local nccl = { ring = { "ring" }, tree = { "pipelined_tree" } }

-- The laws of a strategy (a row of lists.strategies) for messages of so many bytes; {} if it is not
-- predicted.
function growth.of(strategy, bytes)
  local names = growth.strategies[strategy.name] or strategy.nccl and nccl[strategy.nccl.algorithm] or {}
  local out = {}
  for _, name in ipairs(names) do
    local law = growth.laws[name]
    if bytes <= (law.largest_bytes or math.huge) then out[#out + 1] = law end
  end
  return out
end

return growth
