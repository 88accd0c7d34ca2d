-- Rows of a sheet from combos of a selection: the combos of each row, the order of rows, and the cells that
-- many sheets have.
local gpus = require "lists.gpus"

local grouping = {}

-- Groups combos with the same key; key_of(combo) may be nil: the combo is left out. Returns map (combo →
-- group), the number of groups, and the first combo of each.
function grouping.by(count, key_of)
  local map, number_of, firsts = {}, {}, {}
  for combo = 1, count do
    local key = key_of(combo)
    if key ~= nil then
      local number = number_of[key]
      if not number then
        number = #firsts + 1
        number_of[key] = number
        firsts[number] = combo
      end
      map[combo] = number
    end
  end
  return map, #firsts, firsts
end

-- The numbers 1..count by descending sum, then by ascending uid.
function grouping.order(sums, uids, count)
  local order = {}
  for i = 1, count do order[i] = i end
  table.sort(order, function(a, b)
    if sums[a] ~= sums[b] then return sums[a] > sums[b] end
    if uids[a] ~= uids[b] then return uids[a] < uids[b] end
    return a < b
  end)
  return order
end

function grouping.total(values)
  local total = 0
  for _, value in ipairs(values) do total = total + value end
  return total
end

-- A number for a cell, or nil.
function grouping.cell(value)
  if value ~= value then return nil end
  return value
end

function grouping.percent(part, total) return total > 0 and 100 * part / total or 0.0 end

-- Cells of rows: add(value) appends one, also nil; row.n counts them.
local row_type = {}
row_type.__index = row_type
function row_type:add(...)
  local count, values, n = select("#", ...), { ... }, self.n
  for i = 1, count do self[n + i] = values[i] end
  self.n = n + count
  return self
end
function grouping.row() return setmetatable({ n = 0 }, row_type) end

-- The work of each combo as selection:group divides it by µs: TFLOP and TB.
function grouping.rates(perf_models)
  local flops, bytes = {}, {}
  for combo, perf in pairs(perf_models) do
    flops[combo] = perf.flops / 1e6
    bytes[combo] = perf.bytes and perf.bytes / 1e6
  end
  return flops, bytes
end

-- ---- the roofline ------------------------------------------------------------------------------

grouping.roofline_columns = { "Roofline Time (µs)", "Roofline Bound", "Roofline Share (%)" }

-- The cells of these columns: the least time of an op on this GPU (lists/gpus.lua), what bounds it, and its
-- share of the mean time. Empty, if the peaks or the work are unknown. `work`: { flops, bytes, spec } or nil.
function grouping.roofline(gpu, work, mean_us)
  if not work then return nil, nil, nil end
  local least, bound = gpus.bound(gpu, work.flops, work.bytes, work.spec)
  local share = least and mean_us and mean_us > 0 and 100 * least / mean_us or nil
  return least, bound, share
end

return grouping
