-- The sheets of trace reports, in the order of the workbook: a row for each file that makes some. `of_rank`
-- is the report of one rank (trace/reports/rank_report.lua), `over_ranks` that over the ranks of a run
-- (trace/reports/workbooks.lua).
--
-- How to add a sheet of a rank's report: generator/trace/sheets/FILE.lua, and a row in `of_rank`. The file
-- returns { make = function(rank, options, notes) -> { sheet... } }; pages/sheets.lua describes a sheet,
-- trace/ops/rank.lua a rank, and trace/reports/rank_report.lua the options. `make` appends a row { what,
-- count, where first, note } to `notes` for each incomplete part of its sheets.
-- trace/sheets/timeline.lua is a short example.
--
-- How to add a sheet over ranks: generator/trace/batch_sheets/FILE.lua, and a row in `over_ranks`. The file
-- returns { field, collect = function(rank) -> value, make = function(ranks) -> { sheet... } }: `collect`
-- runs once for each rank, in a process of its own, and returns plain tables, numbers and texts; `make` finds
-- the values as ranks[i][field], and the number of the rank as ranks[i].rank. trace/batch_sheets/events.lua
-- is a short example.
--
--   file    the file, without .lua; or make = the function, if another room computes the sheet
--   option  over ranks: only with this option; the rank report passes its options to `make`
--   keys    { [name of a sheet] = the columns that identify a row when `gentables trace compare` compares
--           reports, or false: that sheet is not compared }. Keys that no report has do not count. A
--           sheet without keys has the columns `name` and `param: ...` (but not `param: transpose`) as
--           keys, and, without these, its first column.
local sequences = require "base.sequences"

local list = {}

local arguments = { "Input Dims", "Input type", "Input Strides", "Concrete Inputs" }

-- Names of processes and threads contain numbers that differ from run to run, as those of streams do: they
-- are not keys.
local function with_arguments(...)
  return table.move(arguments, 1, #arguments, select("#", ...) + 1, { ... })
end

local function collectives_of_rank(rank, options)
  if options.collectives == false then return {} end
  local rank_sheets = require "trace.collectives.rank_sheets"
  return { rank_sheets.summary_long(rank.trace, options.rank or rank.trace:info().rank or 0) }
end

list.of_rank = {
  { file = "timeline", keys = { gpu_timeline = { "type" } } },
  { file = "steps", keys = { steps = false, phases = { "phase" } } },
  { file = "ops", keys = { ops_summary = { "name" }, ops_summary_by_category = { "op category" },
    ops_unique_args = with_arguments("name", "op category") } },
  { file = "unified", keys = { unified_perf_summary = with_arguments("name", "op category") } },
  { file = "kernels", keys = {
    kernel_summary = { "Parent op category", "Parent cpu_op", "Kernel name" },
    short_kernel_histogram = false,
    short_kernels_summary = { "Parent cpu_op", "Input dims", "Input strides", "Concrete Inputs",
      "Kernel name" } } },
  { file = "per_op" },
  { file = "stacks", keys = { call_stacks = { "op", "entry point", "stack" } } },
  { make = collectives_of_rank, keys = { nccl_summary_long = { "rank", "Process Group Name",
    "Collective name", "Group size", "dtype", "In msg nelems", "Out msg nelems", "inferred from kernel" } } },
}

list.over_ranks = {
  { file = "ops" },
  { file = "launchers" },
  { file = "timelines" },
  { file = "short_kernels" },
  { file = "events" },
  { file = "breakdown" },
  { file = "kernels", option = "all_kernels" },
}

-- Keys of sheets of other files: collectives over ranks (trace/collectives/rank_sheets.lua), and notes.
local other_keys = {
  nccl_summary_implicit_sync = { "Collective name", "dtype", "In msg nelems", "inferred from kernel" },
  straggler_summary = { "rank" },
  nccl_summary_groups = { "Process Group Name", "Process Group Ranks", "Collective name", "dtype" },
  nccl_summary_nodes = { "span" }, nccl_all2allv_ranks = { "rank" }, nccl_all2allv_traffic = { "rank" },
  nccl_long = false, nccl_implicit_sync = false, nccl_all2allv = false, nccl_notes = false,
  incomplete = false, notes = false, tree_diff = false,
}

-- The keys of the sheet with this name, as in `keys` above: columns, false, or nil.
function list.keys(name)
  for _, rows in ipairs { list.of_rank, list.over_ranks } do
    for _, row in ipairs(rows) do
      if row.keys and row.keys[name] ~= nil then return row.keys[name] end
    end
  end
  return other_keys[name]
end

-- The sheets of a rank (trace/ops/rank.lua); appends to `notes`.
function list.make_of_rank(rank, options, notes)
  return sequences.join(list.of_rank, function(row)
    return (row.make or require("trace.sheets." .. row.file).make)(rank, options, notes)
  end)
end

-- The modules of `over_ranks` that these options select.
function list.modules_over_ranks(options)
  return sequences.map(list.over_ranks, function(row)
    return (not row.option or options[row.option]) and require("trace.batch_sheets." .. row.file) or nil
  end)
end

return list
