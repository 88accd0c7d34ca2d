-- The expected time of a visit, in seconds, for sweeps with a budget.
--
-- A visit takes its sampling time and, beyond that, a time proportional to the bytes of its message and to
-- the number of strategies: data are prepared, results verified, and a least number of calls made even if
-- they take longer. The time per byte is a constant first, and then estimated from visits. Reads no clock.
local cell_records = require "rows.cell_records"

local cost = {}
cost.__index = cost

local BYTE_S = 5e-9          -- of one strategy's message, prepared, verified and called once; a first guess
local BYTE_WEIGHT = 32 << 20 -- weight of this guess, in bytes
local LEAST_S = 1e-3         -- least time of a visit
local BESIDE_S = 0.02        -- part of a visit that depends neither on sampling nor on bytes

local function key_of(cell) return cell_records.key(cell_records.record(cell)) end

-- The least time for one sample of each strategy, estimated from bytes.
function cost.least(cell, strategies) return math.max(LEAST_S, cell.size * strategies * BYTE_S) end

-- `cell_s`: the sampling time of a visit.
function cost.new(cell_s)
  return setmetatable({ beside_s = cell_s + BESIDE_S, seconds = BYTE_WEIGHT * BYTE_S, bytes = BYTE_WEIGHT,
    seen = {} }, cost)
end

-- The same for another sampling time of a visit.
function cost:with_sampling(cell_s)
  if cell_s + BESIDE_S == self.beside_s then return self end
  return setmetatable({ beside_s = cell_s + BESIDE_S, seconds = self.seconds, bytes = self.bytes, seen = {} },
    cost)
end

-- Enters the time of a visit of `cell` with this number of strategies.
function cost:take(cell, strategies, seconds)
  self.seen[key_of(cell)] = seconds / strategies
  self.seconds = self.seconds + math.max(0, seconds - self.beside_s)
  self.bytes = self.bytes + cell.size * strategies
end

-- The expected time of a visit of `cell` with this number of strategies: as in an earlier visit of the cell,
-- else estimated from its bytes.
function cost:expect(cell, strategies)
  local before = self.seen[key_of(cell)]
  if before then return before * strategies end
  return self.beside_s + cell.size * strategies * self.seconds / self.bytes
end

return cost
