-- NCCL's algorithms and protocols for an allreduce, and channel counts. Each combination is a strategy, such
-- as NCCL_RING_LL128_16CH; in NCCL_RING_LL128, without a count, NCCL chooses the channels. `tuner`: the word
-- in a file of NCCL's tuner. Rows cannot have other channel counts; to add one, add a number here.
return {
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
  -- One for each algorithm and protocol; channel counts share a colour.
  colours = { "#009e73", "#56b4e9", "#0072b2", "#e69f00", "#d55e00", "#999933", "#cc79a7", "#882255",
    "#ddcc77", "#4d4d4d" },
}
