-- Finds kernels of different ranks that are the same call of a collective. An early rank waits in its kernel
-- for the others; the shortest kernel of a call is nearest to the time of the call itself.
--
-- Calls are matched by their index among the calls of the same process group. If ranks differ there in
-- number, collective or bytes, for example because a file lacks an event, the group's calls are not matched.
local call_matching = {}

-- The calls of all ranks, each kernel by itself.
function call_matching.all(ranks)
  local calls = {}
  for _, rank in ipairs(ranks) do table.move(rank.collectives, 1, #rank.collectives, #calls + 1, calls) end
  return calls
end

-- The calls of each group, as a list of lists: one for each rank that has any. Calls of an unknown group are
-- added to `loose`.
local function by_group(ranks, loose)
  local groups, of_key = {}, {}
  for _, rank in ipairs(ranks) do
    local mine = {}
    for _, call in ipairs(rank.collectives) do
      if not call.group then
        loose[#loose + 1] = call
      elseif mine[call.group] then
        table.insert(mine[call.group], call)
      else
        mine[call.group] = { call }
        if not of_key[call.group] then
          of_key[call.group] = {}
          groups[#groups + 1] = of_key[call.group]
        end
        table.insert(of_key[call.group], mine[call.group])
      end
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
  for k, shortest in ipairs(lists[1]) do
    for _, list in ipairs(lists) do
      if list[k].stop - list[k].start < shortest.stop - shortest.start then shortest = list[k] end
    end
    out[#out + 1] = shortest
  end
end

-- The calls of all ranks, one for each matched call.
function call_matching.shortest(ranks)
  local out = {}
  for _, lists in ipairs(by_group(ranks, out)) do
    if agree(lists) then
      append_shortest(lists, out)
    else
      for _, list in ipairs(lists) do table.move(list, 1, #list, #out + 1, out) end
    end
  end
  return out
end

return call_matching
