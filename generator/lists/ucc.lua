-- The algorithms of an allreduce in UCC's TL/UCP, as rows of lists.strategies: rows of other tools have them,
-- such as OSU's with UCC_TL_UCP_TUNE. `ucc_algorithm`: the name after @ in a score string.
local function of_ucc(row)
  row.name, row.hatched = "UCC_" .. row.ucc_algorithm:upper(), true
  return row
end

return {
  of_ucc { ucc_algorithm = "knomial", mark = "UK", colour = "#56b4e9",
    help = "UCC, TL/UCP: the whole message up and down a k-nomial tree" },
  of_ucc { ucc_algorithm = "sra_knomial", mark = "US", colour = "#999933",
    help = "UCC, TL/UCP: k-nomial reduce-scatter, then allgather" },
  of_ucc { ucc_algorithm = "sliding_window", mark = "UW", colour = "#cc79a7",
    help = "UCC, TL/UCP: a sliding window of one-sided reads and writes" },
  of_ucc { ucc_algorithm = "dbt", mark = "UD", colour = "#009e73",
    help = "UCC, TL/UCP: a double binary tree" },
  of_ucc { ucc_algorithm = "ring", mark = "UR", colour = "#d55e00",
    help = "UCC, TL/UCP: a ring" },
}
