-- The expected time of a visit, in seconds.
--
-- A visit takes its sampling time, or less where few calls are precise enough, and, beyond that, a time
-- proportional to the bytes of its message and to the number of strategies: data are prepared, results
-- verified, and a least number of calls made even if they take longer. The time per byte is a constant first,
-- and then estimated from visits. Reads no clock.
local cell_records = require "rows.cell_records"
local sequences = require "base.sequences"

local cost = {}
cost.__index = cost

local BYTE_S = 5e-9          -- of one strategy's message, prepared, verified and called once; a first guess
local BYTE_WEIGHT = 32 << 20 -- weight of this guess, in bytes
local LEAST_S = 1e-3         -- least time of a visit
local BESIDE_S = 0.02        -- part of a visit that depends neither on sampling nor on bytes
local LEAST_VISITS = 5       -- for likely times

local function octave_of(cell) return math.floor(math.log(cell.size, 2)) end
local function key_of(cell) return cell_records.key(cell_records.record(cell)) end

-- The least time for one sample of each strategy, estimated from bytes.
function cost.least(cell, strategies) return math.max(LEAST_S, cell.size * strategies * BYTE_S) end

-- `cell_s`: the sampling time of a visit.
function cost.new(cell_s)
  return setmetatable({ beside_s = cell_s + BESIDE_S, seconds = BYTE_WEIGHT * BYTE_S, bytes = BYTE_WEIGHT,
    visits = 0, seen = {}, octaves = {} }, cost)
end

-- The same for another sampling time of a visit.
function cost:with_sampling(cell_s)
  if cell_s + BESIDE_S == self.beside_s then return self end
  return setmetatable({ beside_s = cell_s + BESIDE_S, seconds = self.seconds, bytes = self.bytes,
    visits = 0, seen = {}, octaves = {} }, cost)
end

-- Enters the time of a visit of `cell` with this number of strategies.
function cost:take(cell, strategies, seconds)
  self.seen[key_of(cell)] = { seconds = seconds, strategies = strategies }
  self.visits = self.visits + 1
  local octave = sequences.at(self.octaves, octave_of(cell))
  octave.seconds = (octave.seconds or 0) + math.min(seconds, self.beside_s)
  octave.visits = (octave.visits or 0) + 1
  self.seconds = self.seconds + math.max(0, seconds - self.beside_s)
  self.bytes = self.bytes + cell.size * strategies
end

-- The expected time of a visit of `cell` with this number of strategies, for a budget: as long for each as in
-- the last visit of the cell, else the whole sampling time and a time by its bytes.
function cost:expect(cell, strategies)
  local last = self.seen[key_of(cell)]
  if last then return last.seconds / last.strategies * strategies end
  return self.beside_s + cell.size * strategies * self.seconds / self.bytes
end

-- Whether there are enough visits for likely times.
function cost:is_known() return self.visits >= LEAST_VISITS end

-- The mean sampling time of the visits at sizes nearest to that of a cell.
local function usual_s(self, cell)
  local size, nearest, best = octave_of(cell), math.huge, nil
  for octave, of in pairs(self.octaves) do
    local distance = math.abs(octave - size - 0.1) -- of two, the larger size
    if distance < nearest then nearest, best = distance, of.seconds / of.visits end
  end
  return best
end

-- The likely time of a visit of `cell` with this number of strategies. Sampling takes as long as in
-- the last visit of the cell, for any number of strategies; without one, as at similar sizes. Only if it
-- is_known.
function cost:likely(cell, strategies)
  local last = self.seen[key_of(cell)]
  if not last then return math.min(self:expect(cell, strategies), usual_s(self, cell)) end
  local beyond = math.max(0, last.seconds - self.beside_s)
  return last.seconds - beyond + beyond / last.strategies * strategies
end

return cost
