-- How long visits take: what a sweep with a budget expects of one before it starts it, in seconds.
--
-- A visit takes the time that sampling was given, and beyond that a time that goes with the bytes of its
-- message and the strategies that are asked for: data are prepared, results verified, and the fewest calls
-- made even where they take longer. How long a byte takes is a guess first, and then what visits have told.
-- Pure: it looks at no clock.
local cell_records = require "rows.cell_records"

local cost = {}
cost.__index = cost

local BYTE_S = 5e-9          -- of one strategy's message: prepared, verified, called once; before any tells
local BYTE_WEIGHT = 32 << 20 -- bytes that this guess counts as
local LEAST_S = 1e-3         -- for a visit, however small
local BESIDE_S = 0.02        -- of a visit, that is neither sampling nor goes with its bytes

local function key_of(cell) return cell_records.key(cell_records.record(cell)) end

-- The least that one sample of each strategy takes, as far as bytes tell.
function cost.least(cell, strategies) return math.max(LEAST_S, cell.size * strategies * BYTE_S) end

-- `cell_s`: the time that a visit's sampling is given.
function cost.new(cell_s)
  return setmetatable({ beside_s = cell_s + BESIDE_S, seconds = BYTE_WEIGHT * BYTE_S, bytes = BYTE_WEIGHT,
    seen = {} }, cost)
end

-- Takes it that a visit of `cell` with so many strategies took so long.
function cost:take(cell, strategies, seconds)
  self.seen[key_of(cell)] = seconds / strategies
  self.seconds = self.seconds + math.max(0, seconds - self.beside_s)
  self.bytes = self.bytes + cell.size * strategies
end

-- What a visit of `cell` with so many strategies is expected to take: as long as there before, or as its
-- bytes tell.
function cost:expect(cell, strategies)
  local before = self.seen[key_of(cell)]
  if before then return before * strategies end
  return self.beside_s + cell.size * strategies * self.seconds / self.bytes
end

return cost
