-- The model of templates: the choices of one arch, and facts about them. Renders nothing.
--
-- model.load(data_dir, arch) reads the folder (rows/rows_folder.lua), with the options of its choices;
-- model.for_format(source, format) gives the view of one format:
--   arch, fallback, lists, format
--   canonical  the canonical table (core.table) of the strategies that the format can name
--   axes       { dtype, op, mode } that formats without such axes hold
--   tp_tables  a table for each TP size on one node, ascending, with cells of `axes`: { tp, nodes, block,
--              mode, hidden_sizes, num_tokens, fusions = { { name, rows = { winners... } } }, predicted =
--              whether from other numbers of nodes }; a winner is a row of lists.strategies, or false where
--              nothing was measured; a row is made when it is first read
--   tp_table_of  TP size -> its table
--   on_nodes   the tables of ranks on several nodes: { { nodes, tp_tables }... }, ascending
--   all_tables those of one node, then those of several
--   by_bytes   the choices by bytes alone on one node, of every op: { { tp, nodes, op, splits (nil: none),
--              block, mode, bytes, winners }... } in the table's order
--   all_by_bytes  those of one node, then those of several
--   strategies the strategies that won a cell of `all_tables` or `all_by_bytes`, and the fallback, in the
--              list's order
local ordering = require "base.ordering"
local sequences = require "base.sequences"
local settings = require "base.lazy" "choose.settings"
local choices = require "core.choose"
local derive = require "base.lazy" "choose.derive"
local fail = require "base.fail"
local gaps = require "formats.gaps"
local lists = require "lists.lists"
local predictions = require "base.lazy" "predict.predictions"
local rank_placement = require "lists.rank_placement"
local rows_folder = require "rows.rows_folder"

local model = {}

-- ---- the source -------------------------------------------------------------------------------

-- The cells and the derived times of a source, with the predicted ones.
local function with_predictions(source)
  local found, cells, times = predictions.of_source(source), source.cells, derive.of_source(source)
  if not found then return cells, times end
  return sequences.join { cells, found.blocks }, sequences.join { times, found.times }
end

-- Lookups of readers without an axis for the data type, other than "nearest".
local OF_ONE_DTYPE = { log2 = true, floor = true }

-- The options of a choice of a source for a reader with this lookup (of core.table).
function model.options_of(source, lookup)
  local cells, times = with_predictions(source)
  lookup = source.corner and "exact" or lookup
  return { loopback = source.loopback, least = source.least, cells = cells,
    only_cells = #source.cells > 0, lookup = lookup, dtype = OF_ONE_DTYPE[lookup] and source.axes.dtype,
    derived = times, untried = derive.untried_of_source(source),
    same_bits_as = source.same_bits_as, workload = source.workload, regret = source.regret }
end

-- The table of the strategies in `candidates` (nil: all) for a reader with this lookup; made once for each
-- combination. The incumbent was chosen for the nearest size, so it counts for that lookup only. If numerics
-- are stable, the canonical table, which is the first, has the classes of the incumbent, and the other tables
-- have those of the canonical one.
local function select_table(source, candidates, lookup)
  local options = model.options_of(source, lookup or "nearest")
  local key = (candidates and table.concat(candidates, ",") or "*") .. " " .. options.lookup
  if not source.tables[key] then
    options.candidates, options.incumbent = candidates, options.lookup == "nearest" and source.stays or nil
    options.stable = source.stable and (source.stable_as or source.stays or true)
    source.tables[key] = fail.unless(choices.select(source.rows, options))
  end
  return source.tables[key]
end

-- The table of all strategies of a source, for readers with this lookup; nil: the canonical table.
function model.canonical(source, lookup) return select_table(source, nil, lookup) end

-- The dtype, op and mode of formats without such axes: those of the spec; without a spec, the only dtype and
-- op of the rows.
local function axes_of(source)
  if source.spec then return source.spec.table end
  local default, blocks = lists.default_table, select_table(source):blocks()
  local dtype, op = blocks[1].dtype, blocks[1].op
  for _, block in ipairs(blocks) do
    if block.dtype ~= dtype then dtype = default.dtype end
    if block.op ~= op then op = default.op end
  end
  return { dtype = dtype, op = op, mode = default.mode }
end

-- The archs of a folder together.
local function load_parts(data_dir, args)
  data_dir = data_dir:gsub("(.)/+$", "%1")
  local source = { data_dir = data_dir, arch = "all", table_arch = "all", arch_row = lists.all_archs,
    parts = {}, files = {} }
  for _, part in ipairs(rows_folder.parts(data_dir, args.sm)) do
    local of_part = setmetatable({ sm = false }, { __index = args })
    table.insert(source.parts, model.load(part.folder, part.arch, of_part))
  end
  return source
end

-- Reads a folder of rows (rows/rows_folder.lua) as a source, with the settings of a choice in `args` (of
-- settings.options; nil: none), for tables in `folder` (nil: data_dir). The arch `all` gives a source of one
-- for each SM version in `parts`; args.sm: only the SM versions of --sm.
function model.load(data_dir, arch, args, folder)
  args = args or {}
  if arch == lists.all_archs.name then return load_parts(data_dir, args) end
  if args.sm then fail.input("--sm requires --arch all; %s is one arch", arch) end
  local source = rows_folder.read(data_dir, arch, args.allow_loopback)
  source.tables, source.planes = {}, {}
  settings.apply(source, args, folder or source.data_dir)
  source.only_measured = args.sm_version ~= nil -- as TensorRT-LLM's generator
  source.stable_as = source.stable and select_table(source) or nil
  source.axes = axes_of(source)
  source.gaps = gaps.of(source, select_table(source))
  if source.workload then
    settings.check_workload(source.workload_path, source.workload, select_table(source):blocks())
  end
  return source
end

-- ---- the table --------------------------------------------------------------------------------

-- The strategies that have a row, as { NAME = true }.
function model.measured(source)
  source.measured = source.measured or source.rows:strategies()
  return source.measured
end

-- The strategies that the format can name. nil: it can name all that have times; such formats share a table.
local function candidates_of(source, format)
  if not format.names then return nil end
  local named = sequences.field(sequences.filter(lists.strategies, format.names), "name")
  local is_named, options = sequences.set(named), model.options_of(source)
  local may_have_more = #options.derived > 0 or #options.untried > 0
  for name in pairs(model.measured(source)) do
    local may_win = lists.find("strategies", name).candidate ~= false
    if may_have_more or may_win and not is_named[name] then return named end
  end
  return nil
end

local function has_winner(table_of, index, block)
  for fusion = 1, #block.fusions do
    for hidden = 1, #block.hidden_sizes do
      for _, strategy in ipairs(table_of:winners(index, fusion, hidden)) do
        if strategy ~= 0 then return true end
      end
    end
  end
  return false
end

-- The block with `axes` of each placement. Rows of other tools have no mode; they are used for placements
-- without rows of the required mode.
local function find_blocks(table_of, axes)
  local of_placement, found = {}, {}
  for index, block in ipairs(table_of:blocks()) do
    local has_shapes = not block.sizes_only and not block.splits -- formats have no axis for the rest
    local is_meant = has_shapes and block.dtype == axes.dtype and block.op == axes.op
    if is_meant and has_winner(table_of, index, block) then
      local placement = rank_placement.words(block.world_size, block.nodes)
      local counts = block.mode == axes.mode or block.mode == "unknown" and not of_placement[placement]
      block.index = index
      if counts then of_placement[placement] = block end
    end
  end
  for _, block in pairs(of_placement) do found[#found + 1] = block end
  return ordering.sort(found, rank_placement.before)
end

-- The winners of a row of cells, as rows of lists.strategies; false: unmeasured.
local function winners_of(table_of, index, fusion, hidden)
  local row = table_of:winners(index, fusion, hidden)
  for t, strategy in ipairs(row) do row[t] = strategy ~= 0 and lists.strategies[strategy] end
  return row
end

-- Whether the choices of a block are predicted from other numbers of nodes.
local function is_predicted(source, block)
  local found = predictions.of_source(source)
  for _, of in ipairs(found and found.blocks or {}) do
    if of.world_size == block.world_size and of.nodes == block.nodes and of.dtype == block.dtype
      and of.op == block.op and of.mode == block.mode then
      return true
    end
  end
end

-- The rows of winners of a fusion.
local function rows_of_winners(table_of, block, fusion)
  return setmetatable({}, { __index = function(rows, h)
    local row = block.hidden_sizes[h] and winners_of(table_of, block.index, fusion, h)
    rows[h] = row
    return row
  end })
end

local function tp_table_of(source, table_of, block)
  local tp_table = { tp = block.world_size, nodes = block.nodes, block = block.index, mode = block.mode,
    hidden_sizes = block.hidden_sizes, num_tokens = block.num_tokens, fusions = {},
    predicted = is_predicted(source, block) }
  for f, name in ipairs(block.fusions) do
    tp_table.fusions[f] = { name = name, rows = rows_of_winners(table_of, block, f) }
  end
  return tp_table
end

-- The blocks without shapes of a data type. If there are rows of several modes, those of the mode of `axes`.
local function blocks_by_bytes(table_of, axes)
  local out, index_of = {}, {}
  for index, block in ipairs(table_of:blocks()) do
    if block.sizes_only and block.dtype == axes.dtype and has_winner(table_of, index, block) then
      local key = ("%d %d %s %s"):format(block.nodes, block.world_size, block.op, block.splits or "")
      local found = { tp = block.world_size, nodes = block.nodes, op = block.op, splits = block.splits,
        block = index, mode = block.mode, bytes = block.num_tokens,
        winners = winners_of(table_of, index, 1, 1) }
      local at = index_of[key] or #out + 1
      if not index_of[key] or block.mode == axes.mode then out[at], index_of[key] = found, at end
    end
  end
  return out
end

-- The names of the strategies that win a cell of these parts of a table, as { NAME = true }.
local function strategies_in(table_of, parts)
  local seen = {}
  for _, part in ipairs(parts) do
    for name in pairs(table_of:tally(part.block).wins) do seen[name] = true end
  end
  return seen
end

-- Enters the table of a placement, which follow each other in the order of rank_placement.before.
local function enter_table(plane, tp_table)
  if tp_table.nodes == 1 then
    table.insert(plane.tp_tables, tp_table)
    plane.tp_table_of[tp_table.tp] = tp_table
    return
  end
  local last = plane.on_nodes[#plane.on_nodes]
  if not last or last.nodes ~= tp_table.nodes then
    last = { nodes = tp_table.nodes, tp_tables = {} }
    table.insert(plane.on_nodes, last)
  end
  table.insert(last.tp_tables, tp_table)
end

-- The part of a table (of select_table) for formats without axes for data type, op and mode; made once for
-- each table.
local function plane_of(source, canonical)
  local plane = source.planes[canonical]
  if plane then return plane end
  plane = { all_tables = {}, tp_tables = {}, tp_table_of = {}, on_nodes = {} }
  for i, block in ipairs(find_blocks(canonical, source.axes)) do
    plane.all_tables[i] = tp_table_of(source, canonical, block)
    enter_table(plane, plane.all_tables[i])
  end
  plane.all_by_bytes = blocks_by_bytes(canonical, source.axes)
  plane.by_bytes = sequences.filter(plane.all_by_bytes, function(of) return of.nodes == 1 end)
  local parts = sequences.join { plane.all_tables, plane.all_by_bytes }
  plane.seen, plane.strategies = strategies_in(canonical, parts), {}
  source.planes[canonical] = plane
  return plane
end

-- The rows of the strategies that occur in a plane, and of the fallback, in the list's order.
local function strategies_of(plane, fallback)
  plane.strategies[fallback] = plane.strategies[fallback] or sequences.filter(lists.strategies,
    function(strategy) return plane.seen[strategy.name] or strategy.name == fallback end)
  return plane.strategies[fallback]
end

-- The strategy that readers of `format` (nil: one that names every strategy) use at unmeasured cells. A table
-- that is restricted to the bits of one strategy falls back on that strategy, unless the format's reader has
-- its own rule.
function model.fallback(source, format)
  local has_own_rule = format and format.names
  return not has_own_rule and source.same_bits_as or source.arch_row.fallback
end

-- The numbers of nodes of a source's rows and predictions, ascending. `only_measured`: of its rows.
function model.node_counts(source, only_measured)
  local counts = sequences.map(source.files, function(entry) return entry.nodes or 1 end)
  if not only_measured then sequences.append(counts, predictions.node_counts(source)) end
  return ordering.sorted_keys(sequences.set(counts))
end

-- The model for the template of `format`. `tp_tables` is empty if no row of one node has `axes`. Formats with
-- the same strategies share parts of it, and must not change them.
function model.for_format(source, format)
  local canonical = select_table(source, candidates_of(source, format), format.lookup)
  local plane, fallback = plane_of(source, canonical), model.fallback(source, format)
  return { arch = source.table_arch, fallback = fallback, lists = lists, format = format,
    source = source, axes = source.axes, canonical = canonical, tp_tables = plane.tp_tables,
    tp_table_of = plane.tp_table_of, on_nodes = plane.on_nodes, all_tables = plane.all_tables,
    by_bytes = plane.by_bytes, all_by_bytes = plane.all_by_bytes,
    strategies = strategies_of(plane, fallback) }
end

-- Whether no row of a source has tokens and a hidden size.
function model.is_by_bytes(source)
  return sequences.all(source.rows:slices(), function(slice) return slice.sizes_only end)
end

-- The dtypes, ops and modes of a table, for people.
function model.blocks_in_words(table_of)
  return table.concat(sequences.distinct(sequences.map(table_of:blocks(), function(block)
    return ("%s %s %s"):format(block.dtype, block.op, block.mode)
  end)), "; ")
end

return model
