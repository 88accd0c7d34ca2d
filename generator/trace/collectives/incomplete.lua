-- Notes on incomplete collectives of several ranks: clocks, missing events, unknown sizes. Each number that
-- is based on such data has a note.
local matching = require "trace.collectives.matching"
local sequences = require "base.sequences"

local incomplete = {}

local MOST_NAMED = 5 -- collectives in a note

-- Sets `shift` (µs) of ranks with a later time base than the earliest, and adds notes on them.
function incomplete.align_clocks(ranks, notes)
  local earliest, without = nil, {}
  for _, rank in ipairs(ranks) do
    if rank.base_nanoseconds ~= 0 then
      earliest = math.min(earliest or rank.base_nanoseconds, rank.base_nanoseconds)
    else
      without[#without + 1] = rank.rank
    end
  end
  if not earliest then return end
  for _, rank in ipairs(ranks) do
    rank.shift = rank.base_nanoseconds ~= 0 and (rank.base_nanoseconds - earliest) / 1000 or 0
    if rank.shift ~= 0 then
      notes[#notes + 1] = ("rank %d counts its times from a base %.3f us later; they are shifted to the "
        .. "earliest base"):format(rank.rank, rank.shift)
    end
  end
  if #without > 0 then
    notes[#notes + 1] = ("without baseTimeNanoseconds, times are compared as written: rank %s")
      :format(table.concat(without, ", "))
  end
end

local function missing_in(one, ranks)
  return sequences.map(ranks, function(rank, rank_index)
    local is_in = matching.names_rank(one.metadata.ranks, rank.rank) ~= false
    return is_in and not one.items[rank_index] and rank.rank or nil
  end)
end

-- The number of items for which text_of(item) is a text, and the first of these texts, joined.
local function some(list, text_of)
  local named, count = {}, 0
  for _, one in ipairs(list) do
    local text = text_of(one)
    if text then
      count = count + 1
      if count <= MOST_NAMED then named[count] = text end
    end
  end
  if count > MOST_NAMED then named[#named + 1] = "..." end
  return count, table.concat(named, ", ")
end

local function note_offsets(ranks, offsets, notes)
  for rank_index, rank in ipairs(ranks) do
    if offsets[rank_index] then
      notes[#notes + 1] = ("the clock of rank %d seems %.3f us ahead; waits and skew include that")
        :format(rank.rank, offsets[rank_index])
    end
  end
end

-- Appends notes on events that other ranks lack, clocks that seem off (offsets[rank_index]), and unknown
-- sizes.
function incomplete.note(all, timed, ranks, offsets, notes)
  note_offsets(ranks, offsets, notes)
  local function add(count, text, named)
    if count > 0 then notes[#notes + 1] = text:format(count, named) end
  end
  local count, named = some(all, function(one)
    return one.count < one.expected and ("%s (not on rank %s)"):format(one.id,
      table.concat(missing_in(one, ranks), ", "))
  end)
  add(count, "collectives not found on every rank (%d): %s", named)
  count, named = some(timed, function(one)
    return one.metadata.group_size and one.expected < one.metadata.group_size and one.id
  end)
  add(count, "collectives with more ranks than traces, with the latency of these ranks only (%d): %s", named)
  count, named = some(all, function(one) return one.count > 1 and one.apart and one.id end)
  add(count, "collectives that do not overlap on all their ranks, with unreliable times (%d): %s", named)
  count, named = some(all, function(one) return not one.metadata.name and one.id end)
  add(count, "collectives without metadata, with names inferred from their kernels, matched by their order "
    .. "(%d): %s", named)
  count, named = some(timed, function(one) return not one.algorithm_bandwidth and one.id end)
  add(count, "collectives without bandwidth: type, size or time is unknown (%d): %s", named)
end

return incomplete
