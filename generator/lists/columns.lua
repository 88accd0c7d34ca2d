-- The columns of benchmark files, in their order. Readers and writers of such files (rows/), records in Lua,
-- what the bench reports of a row, the journal, the pooling of launches and the workbook follow this list.
--
--   name         in the first line of a file
--   other_name   in files of TensorRT-LLM's --benchmark mode, if it differs
--   key          the field of a record in Lua, and of a `row` line of the bench
--   required     a file without this column is refused
--   ours         only gentables writes it
--   filled       written only if some row has a value for it or for a column after it
--   names        the list in lists.lua that the values are names of
--   may_be_empty of names: a row may have none
--   bench        "always": a `row` line of the bench without it is refused; "sometimes": it may lack it
--   least, above the values of the bench are at least this, or above it; without both: at least 0
--   whole        a whole number
--   pool         how the values of several launches become that of a row: "median", "least" or "sum"; other
--                columns are computed in sweep/pooling.lua
--   title        the heading in the workbook; without one the workbook leaves the column out
--
-- How to add a column: a row at the end of the list, with `ours` and `filled`, and the code that computes
-- the value. If the bench measures it: `bench` = "sometimes", `pool` for several launches, and a function
-- figure_KEY in bench/measure/figures.c. If it is computed from the launches of a row: sweep/pooling.lua. If
-- it is computed from several results of `gentables tune`: tune/to_rows.lua. A column with other values than
-- numbers of at least 0 needs a kind of its own in lists/columns.h, and a case where rows/ switches on kinds.
return {
  { name = "world_size", key = "world_size", required = true },
  { name = "dtype", key = "dtype", names = "dtypes", required = true },
  { name = "size", other_name = "size_bytes", key = "size", required = true },
  { name = "num_tokens", key = "num_tokens", required = true },
  { name = "hidden_size", key = "hidden_size", required = true },
  { name = "strategy", key = "strategy", names = "strategies", required = true },
  { name = "fusion", key = "fusion", names = "fusions", required = true },
  { name = "op", key = "op", names = "ops" },
  { name = "time (us)", other_name = "time_us", key = "time_us", required = true, bench = "always", above = 0,
    title = "time (µs)" },
  { name = "low (us)", key = "low_us", ours = true, bench = "always", title = "low (µs)" },
  { name = "high (us)", key = "high_us", ours = true, bench = "always", title = "high (µs)" },
  { name = "samples", key = "samples", ours = true, bench = "always", least = 1, whole = true, pool = "sum",
    title = "samples" },
  { name = "min (us)", key = "min_us", ours = true, bench = "always", pool = "least", title = "min (µs)" },
  { name = "p95 (us)", key = "p95_us", ours = true, bench = "always", pool = "median", title = "p95 (µs)" },
  { name = "p99 (us)", key = "p99_us", ours = true, bench = "always", pool = "median", title = "p99 (µs)" },
  { name = "skew (us)", key = "skew_us", ours = true, bench = "sometimes", pool = "median",
    title = "skew (µs)" },
  { name = "bound (us)", key = "bound_us", ours = true, bench = "always", pool = "median",
    title = "bound (µs)" },
  { name = "mode", key = "mode", names = "modes", ours = true, bench = "always" },
  { name = "accumulate", key = "accumulate", names = "accumulates", may_be_empty = true, ours = true,
    bench = "always" },
  { name = "placement", key = "placement", names = "placements", ours = true, bench = "always" },
  { name = "launches (us)", key = "launches", ours = true },
  { name = "bits", key = "bits", ours = true },
  -- Weights of the destinations of an alltoallv.
  { name = "splits", key = "splits", ours = true, filled = true },
  -- A launch that does nothing, on a GPU, and how many calls a sample has there.
  { name = "floor (us)", key = "floor_us", ours = true, filled = true, bench = "sometimes", pool = "median" },
  { name = "calls", key = "calls", ours = true, filled = true, bench = "sometimes", least = 1, whole = true,
    pool = "median" },
  -- Of a row with an epilogue: the time with the epilogue in a pass of its own, and without the epilogue.
  { name = "separate (us)", key = "separate_us", ours = true, filled = true },
  { name = "alone (us)", key = "alone_us", ours = true, filled = true },
  -- Of ranks on several nodes, with the same number on each: nodes x ranks_per_node is world_size.
  { name = "nodes", key = "nodes", ours = true, filled = true },
  { name = "ranks_per_node", key = "ranks_per_node", ours = true, filled = true },
}
