-- The rows of a folder, or of single files, for pictures: slices of one TP size and fusion, each a grid of
-- hidden sizes x token counts.
--
--   local rows = require("pictures.picture_slices").of_folder("tables/host", "host")
--   local slice = rows:slice(2, "NONE")
--   slice.rows.ONESHOT[h][t].time_us
local derive = require "choose.derive"
local fail = require "base.fail"
local lists = require "lists.lists"
local lookup_rule = require "core.lookup_rule"
local model = require "formats.model"
local machines = require "machine.machines"
local provenance = require "rows.provenance"
local rank_placement = require "lists.rank_placement"
local rows_folder = require "rows.rows_folder"
local sequences = require "base.sequences"
local sorted_keys = require("base.ordering").sorted_keys
local spec = require "rows.spec"

local picture_slices = {}
local methods = {}
methods.__index = methods

-- ---- which rows -------------------------------------------------------------------------------

local function in_words(axes)
  return ("%s %s %s"):format(axes.dtype, axes.op, axes.mode == "unknown" and "mode unknown" or axes.mode)
end

local function all_in_words(slices)
  return table.concat(sequences.distinct(sequences.map(slices, in_words)), "; ")
end

-- The value of `name` if all slices have the same, else nil.
local function only(slices, name)
  local is_one = sequences.all(slices, function(slice) return slice[name] == slices[1][name] end)
  return is_one and slices[1] and slices[1][name] or nil
end

-- The dtype, op and mode to show: those given; else those of the spec's table; else the only values, or the
-- defaults.
local function axes_of(slices, given, wanted)
  local axes = {}
  for _, name in ipairs { "dtype", "op", "mode" } do
    local list = name .. "s"
    if given[name] and not lists.find(list, given[name]) then
      fail.input("--%s %s: no such %s; valid: %s", name, given[name], name,
        table.concat(lists.names(list), ", "))
    end
    axes[name] = given[name] and lists.find(list, given[name]).name
      or wanted and wanted.table[name] or only(slices, name) or spec.default_table[name]
  end
  return axes
end

-- The slices of these axes, as [size of rank_placement][fusion], and the placements, { { world_size, nodes,
-- size }... }, in their order. Rows of other tools have an unknown mode; they are used for placements that
-- have no rows of the mode to show.
local function choose(slices, axes)
  local chosen, placements = {}, {}
  for _, mode in ipairs { axes.mode, "unknown" } do
    for _, slice in ipairs(slices) do
      if slice.dtype == axes.dtype and slice.op == axes.op and slice.mode == mode then
        local size = rank_placement.size_of(slice)
        local fusions = chosen[size] or { mode = mode }
        if not chosen[size] then
          placements[#placements + 1] = { world_size = slice.world_size, nodes = slice.nodes, size = size }
        end
        chosen[size] = fusions
        if fusions.mode == mode then fusions[slice.fusion] = slice end
      end
    end
  end
  table.sort(placements, rank_placement.before)
  return chosen, placements
end

-- The axes of rows that are not shown, as text, or nil.
local function left_out(slices, axes)
  local others = sequences.filter(slices, function(slice)
    return not (slice.dtype == axes.dtype and slice.op == axes.op
      and (slice.mode == axes.mode or slice.mode == "unknown"))
  end)
  return #others > 0 and all_in_words(others) or nil
end

-- The fusions of any TP size or of the spec, in the list's order.
local function fusions_of(chosen, wanted)
  return sequences.filter(lists.names "fusions", function(name)
    local found = wanted ~= nil and lists.contains(wanted.fusions, name)
    for _, fusions in pairs(chosen) do found = found or fusions[name] ~= nil end
    return found
  end)
end

local function open(source, given)
  source.least = true -- of repeated rows
  local slices = source.rows:slices()
  local axes = axes_of(slices, given, source.spec)
  local chosen, placements = choose(slices, axes)
  if next(chosen) == nil then
    fail.input("%s: no row of %s; the rows are %s; --dtype, --op and --mode choose", source.data_dir,
      in_words(axes), all_in_words(slices))
  end
  local sizes = sequences.field(placements, "size")
  return setmetatable({ source = source, arch = source.arch, axes = axes, chosen = chosen,
    placements = placements, tp_sizes = sizes, fusions = fusions_of(chosen, source.spec),
    shown = in_words(axes), left_out = left_out(slices, axes) }, methods)
end

-- Reads a folder; its choices are those of its table.csv. `given`: { dtype, op, mode }, each or nil. Raises
-- for wrong or missing input.
function picture_slices.of_folder(data_dir, arch, given)
  return open(model.load(data_dir, arch), given or {})
end

-- Reads benchmark files of any name; the arch is that in documented names. Uses readable provenance beside
-- them.
function picture_slices.of_files(paths, given)
  local files, arch = {}, nil
  for i, path in ipairs(paths) do
    files[i] = { path = path }
    local _, _, named_arch = rank_placement.of_file_name(path)
    arch = arch or named_arch
    local record = provenance.read(provenance.path_of(path))
    if record then files[i].provenance = record end
  end
  local source = { data_dir = paths[1], arch = arch or "unknown arch", table_arch = arch, files = files,
    rows = rows_folder.read_rows(files), loopback = arch ~= nil and arch:find("%-loopback$") ~= nil,
    cells = {}, derived = {}, tables = {} }
  return open(source, given or {})
end

-- ---- a slice ----------------------------------------------------------------------------------

-- A sorted list of the values in these lists, and the index of each.
local function axis(...)
  local values = sorted_keys(sequences.set(sequences.join { ... }))
  return values, sequences.indices(values)
end

-- The sizes of the spec for this slice, so that cells without any row show as missing.
local function sizes_of_spec(source, slice)
  for _, cells in ipairs(source.cells) do
    local fits = cells.world_size == slice.world_size and (cells.nodes or 1) == slice.nodes
      and cells.dtype == slice.dtype and cells.op == slice.op
    if fits and lists.contains(cells.fusions, slice.fusion) then return cells end
  end
  return { hidden_sizes = {}, num_tokens = {} }
end

-- Enters the rows of all strategies; of several rows of a cell, the fastest.
local function enter_rows(slice, columns, hidden_index_of, token_index_of)
  for i = 1, columns.count do
    local name = columns.strategy[i]
    local grid = slice.rows[name]
    if not grid then
      grid = {}
      for h = 1, #slice.hidden_sizes do grid[h] = {} end
      slice.rows[name] = grid
    end
    local line, t = grid[hidden_index_of[columns.hidden_size[i]]], token_index_of[columns.num_tokens[i]]
    if not line[t] or columns.time_us[i] < line[t].time_us then
      line[t] = { time_us = columns.time_us[i], low_us = columns.low_us[i] or nil,
        high_us = columns.high_us[i] or nil, bound_us = columns.bound_us[i] or nil,
        size_bytes = columns.size[i], placement = columns.placement[i] }
    end
    slice.has_interval = slice.has_interval or columns.low_us[i] ~= false
    slice.has_bound = slice.has_bound or columns.bound_us[i] ~= false
    slice.oversubscribed = slice.oversubscribed or columns.placement[i] == "oversubscribed"
  end
end

-- The interpolated times of a slice: [name][h][t] = microseconds.
local function derived_of(source, key, hidden_index, token_index)
  local out = {}
  for _, time in ipairs(derive.of_source(source)) do
    local h, t = hidden_index[time.hidden_size], token_index[time.num_tokens]
    local is_of = time.world_size == key.world_size and (time.nodes or 1) == key.nodes
      and time.dtype == key.dtype and time.op == key.op and time.mode == key.mode
      and time.fusion == key.fusion
    if is_of and h and t then
      sequences.at(sequences.at(out, time.strategy), h)[t] = time.time_us
    end
  end
  return out
end

-- The block of a table that has the cells of `key`.
local function block_of(table_of, key)
  for _, block in ipairs(table_of:blocks()) do
    local is_of = block.world_size == key.world_size and block.nodes == key.nodes
      and block.dtype == key.dtype and block.op == key.op and block.mode == key.mode
      and not block.splits and not block.sizes_only
    if is_of and lists.contains(block.fusions, key.fusion) then return block end
  end
end

-- The choice that the table gives for each shape: [h][t] = cell of core.table, or nil. For a shape between
-- the table's sizes it is that of the nearest cell, with the strategy's own time at the shape, if it has one.
local function best_of(table_of, slice, key)
  local best, block = {}, block_of(table_of, key)
  for h, hidden_size in ipairs(slice.hidden_sizes) do
    best[h] = {}
    for t, num_tokens in ipairs(block and slice.num_tokens or {}) do
      key.hidden_size = block.hidden_sizes[lookup_rule.nearest(block.hidden_sizes, hidden_size)]
      key.num_tokens = block.num_tokens[lookup_rule.nearest(block.num_tokens, num_tokens)]
      local cell = table_of:find(key)
      if cell and (key.hidden_size ~= hidden_size or key.num_tokens ~= num_tokens) then
        local row = slice.rows[cell.strategy] and slice.rows[cell.strategy][h][t]
        cell.time_us, cell.derived = row and row.time_us, not row
      end
      best[h][t] = cell
      slice.has_best = slice.has_best or cell ~= nil
    end
  end
  return best
end

-- The reasons of cells x strategies without a time: { { reason, count }... }, in the order of the provenance.
local function reasons_of(source, key)
  local reasons, known = {}, {}
  for _, file in ipairs(source.files) do
    local of_this = file.tp == nil or file.tp == key.world_size and file.nodes == key.nodes
    for _, cell in ipairs(of_this and file.provenance and file.provenance.no_time or {}) do
      local fits = cell.fusion == key.fusion and cell.dtype == key.dtype and cell.op == key.op
        and cell.mode == key.mode
      if fits then
        local entry = sequences.entry(reasons, known, cell.reason, function()
          return { reason = cell.reason, count = 0 }
        end)
        entry.count = entry.count + 1
      end
    end
  end
  return reasons
end

local function machine_of(source)
  local record = provenance.first(source.files)
  return record and machines.describe(record.machine)
end

local function strategies_of(slice)
  return sequences.filter(lists.strategies, function(strategy) return slice.rows[strategy.name] end)
end

-- The table of all cells; made by the first call.
function methods:table() return model.canonical(self.source) end

-- The slice of a fusion and one of tp_sizes (a number for ranks on one node), or nil without rows:
--   arch, tp, nodes, placement ("TP 2"), fusion, dtype, op, mode, machine (words, or nil)
--   hidden_sizes, num_tokens   ascending
--   strategies                 rows of lists.strategies that have a time here, in the list's order
--   rows[name][h][t]           { time_us, low_us, high_us, bound_us, size_bytes, placement }, or nil
--   derived[name][h][t]        microseconds: interpolated times of shapes without a row
--   time_at(name, h, t)        the time of a strategy in `strategies`, and whether it is interpolated; or nil
--   note_of_derived            the note for interpolated times, or nil where there are none
--   best[h][t]                 the table's choice for the shape, a cell of core.table, or nil
--   has_best, has_interval, has_bound, oversubscribed
--   reasons                    { { reason, count }... } of cells x strategies without a time
function methods:slice(tp, fusion)
  local key = self.chosen[tp] and self.chosen[tp][fusion]
  if not key then return nil end
  local columns, of_spec = self.source.rows:slice(key), sizes_of_spec(self.source, key)
  local slice = { arch = self.arch, tp = key.world_size, nodes = key.nodes,
    placement = rank_placement.words(key.world_size, key.nodes), fusion = fusion, dtype = key.dtype,
    op = key.op, mode = key.mode, machine = machine_of(self.source), rows = {} }
  local hidden_index_of, token_index_of
  slice.hidden_sizes, hidden_index_of = axis(columns.hidden_size, of_spec.hidden_sizes)
  slice.num_tokens, token_index_of = axis(columns.num_tokens, of_spec.num_tokens)
  enter_rows(slice, columns, hidden_index_of, token_index_of)
  slice.strategies = strategies_of(slice)
  slice.derived = derived_of(self.source, key, hidden_index_of, token_index_of)
  slice.best = best_of(self:table(), slice, { world_size = key.world_size, nodes = key.nodes,
    dtype = key.dtype, op = key.op, mode = key.mode, fusion = fusion })
  slice.note_of_derived = next(slice.derived) and "~: interpolated, not measured." or nil
  function slice.time_at(name, h, t)
    local row, derived = slice.rows[name][h][t], slice.derived[name]
    if row then return row.time_us, false end
    return derived and derived[h] and derived[h][t], true
  end
  slice.reasons = reasons_of(self.source, key)
  return slice
end

return picture_slices
