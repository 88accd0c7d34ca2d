-- Finds kernels of different ranks that are the same call of a collective. An early rank waits in its kernel
-- for the others; the shortest kernel of a call is nearest to the time of the call itself.
--
-- Calls are matched by their index among the calls of the same process group. If ranks differ there in
-- number, collective or bytes, for example because a file lacks an event, the group's calls are not matched.
local ordering = require "base.ordering"
local sequences = require "base.sequences"

local call_matching = {}

-- The calls of all ranks, each kernel by itself.
function call_matching.all(ranks) return sequences.join(sequences.field(ranks, "collectives")) end

-- The calls of each group, as a list of lists: one for each rank that has any. Calls of an unknown group are
-- added to `loose`.
local function by_group(ranks, loose)
  local groups, of_key = {}, {}
  for _, rank in ipairs(ranks) do
    sequences.append(loose, sequences.filter(rank.collectives, function(call) return not call.group end))
    for _, mine in ipairs(ordering.groups(rank.collectives, function(call) return call.group end)) do
      table.insert(sequences.entry(groups, of_key, mine.key, function() return {} end), mine)
    end
  end
  return groups
end

local function agree(lists)
  for _, list in ipairs(lists) do
    if #list ~= #lists[1] then return false end
    for i, call in ipairs(list) do
      local first = lists[1][i]
      if call.name ~= first.name or call.bytes ~= first.bytes then return false end
    end
  end
  return true
end

-- Appends the shortest of the k-th calls, for every k.
local function append_shortest(lists, out)
  for k in ipairs(lists[1]) do
    local calls = sequences.field(lists, k)
    out[#out + 1] = sequences.largest(calls, function(call) return call.start - call.stop end)
  end
end

-- The calls of all ranks, one for each matched call.
function call_matching.shortest(ranks)
  local out = {}
  for _, lists in ipairs(by_group(ranks, out)) do
    if agree(lists) then
      append_shortest(lists, out)
    else
      for _, list in ipairs(lists) do sequences.append(out, list) end
    end
  end
  return out
end

return call_matching
