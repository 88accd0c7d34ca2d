-- Cells and records: the cells of a spec at one TP size, those of them that are not measured yet, keys and
-- order of records. Nothing here measures, reads or writes.
local lists = require "lists.lists"
local rank_placement = require "lists.rank_placement"
local sequences = require "base.sequences"

local cell_records = {}

-- The fields of a cell with a strategy, in the order by which rows are sorted; names with a `list` in the
-- order of that list.
local axes = {
  { name = "world_size" },
  { name = "dtype", list = "dtypes" },
  { name = "op", list = "ops" },
  { name = "mode", list = "modes" },
  { name = "fusion", list = "fusions" },
  { name = "hidden_size" },
  { name = "num_tokens" },
  { name = "strategy", list = "strategies" },
}

local position = {}
for _, axis in ipairs(axes) do
  for i, row in ipairs(axis.list and lists[axis.list] or {}) do
    sequences.at(position, axis.name)[row.name] = i
  end
end

-- Whether record `a` comes before `b` in a rows file.
function cell_records.before(a, b)
  if (a.nodes or 1) ~= (b.nodes or 1) then return (a.nodes or 1) < (b.nodes or 1) end
  for _, axis in ipairs(axes) do
    local left, right = a[axis.name], b[axis.name]
    if left ~= right then
      local positions = position[axis.name]
      if positions then left, right = positions[left] or math.huge, positions[right] or math.huge end
      return left < right
    end
  end
  return false
end

-- A text that is the same for two records if and only if they are of the same cell and strategy. A record
-- without tokens is of its size.
function cell_records.key(record)
  local parts = {}
  for i, axis in ipairs(axes) do parts[i] = tostring(record[axis.name]) end
  if not record.num_tokens then parts[#parts + 1] = ("%d bytes"):format(record.size or 0) end
  parts[#parts + 1] = record.splits -- of an alltoallv
  if rank_placement.spans(record.nodes) then parts[#parts + 1] = "nodes" .. record.nodes end
  return table.concat(parts, " ")
end

-- A record with the fields of a cell, a strategy, and the fields of `extra`.
function cell_records.record(cell, strategy, extra)
  local record = { world_size = cell.world_size, dtype = cell.dtype, op = cell.op, mode = cell.mode,
    fusion = cell.fusion, hidden_size = cell.hidden_size, num_tokens = cell.num_tokens, strategy = strategy,
    splits = cell.splits, nodes = cell.nodes, ranks_per_node = cell.ranks_per_node }
  for key, value in pairs(extra or {}) do record[key] = value end
  return record
end

-- The cell as text, for progress and messages.
function cell_records.describe(cell)
  return ("%s %s %s, hidden size %d, %d token%s"):format(
    rank_placement.words(cell.world_size, cell.nodes), cell.dtype, cell.fusion, cell.hidden_size,
    cell.num_tokens, cell.num_tokens == 1 and "" or "s")
end

local function limit_reason(spec, cell)
  if cell.size > spec.limits.message_bytes then
    return ("its message is above the spec's limit of %d bytes"):format(spec.limits.message_bytes)
  end
end

-- All cells of the spec at one TP size, in the order of rows files: { world_size, dtype, op, mode, fusion,
-- hidden_size, num_tokens, splits, size (bytes of one rank's message), skip (why it is not measured, or nil)
-- }. `nodes`: the nodes of these ranks, by default 1; with more, cells also have nodes and ranks_per_node.
function cell_records.cells(spec, world_size, nodes)
  local cells = {}
  if not rank_placement.spans(nodes) then nodes = nil end
  for _, dtype in ipairs(spec.dtypes) do
    local bytes = lists.find("dtypes", dtype).bytes
    for _, fusion in ipairs(spec.fusions) do
      for _, hidden_size in ipairs(spec.hidden_sizes) do
        for _, num_tokens in ipairs(spec.num_tokens) do
          local cell = { world_size = world_size, dtype = dtype, op = spec.table.op, mode = spec.table.mode,
            fusion = fusion, hidden_size = hidden_size, num_tokens = num_tokens, splits = spec.splits,
            nodes = nodes, ranks_per_node = nodes and world_size // nodes,
            size = hidden_size * num_tokens * bytes }
          cell.skip = limit_reason(spec, cell)
          cells[#cells + 1] = cell
        end
      end
    end
  end
  return cells
end

-- The cells with strategies that are not measured yet: a list of { cell, strategies }, in order. `done` has
-- the cell_records.key of each measured record.
function cell_records.missing(spec, cells, done)
  return sequences.map(cells, function(cell)
    local strategies = sequences.filter(cell.skip and {} or spec.strategies, function(strategy)
      return not done[cell_records.key(cell_records.record(cell, strategy))]
    end)
    return #strategies > 0 and { cell = cell, strategies = strategies } or nil
  end)
end

-- All records that the spec requires at these cells, as { key -> record without a time }; `skip` is set if
-- the record is not measured.
function cell_records.wanted(spec, cells)
  local wanted = {}
  for _, cell in ipairs(cells) do
    for _, strategy in ipairs(spec.strategies) do
      local record = cell_records.record(cell, strategy, { skip = cell.skip })
      wanted[cell_records.key(record)] = record
    end
  end
  return wanted
end

return cell_records
