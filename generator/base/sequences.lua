-- Functions of lists: new lists from old ones, and searches. They change no list but that of `append` and
-- `entry`.
local ordering = require "base.ordering"

local sequences = {}

-- The results of of(value, index) for the values of a list, in order, without nil.
function sequences.map(list, of)
  local out = {}
  for i, value in ipairs(list) do out[#out + 1] = of(value, i) end
  return out
end

-- The values of a list for which is_wanted(value) is true.
function sequences.filter(list, is_wanted)
  local out = {}
  for _, value in ipairs(list) do
    if is_wanted(value) then out[#out + 1] = value end
  end
  return out
end

-- The field `key` of each value of a list, without nil.
function sequences.field(list, key)
  return sequences.map(list, function(value) return value[key] end)
end

-- The first value of a list for which is_wanted(value) is true; or nil.
function sequences.find(list, is_wanted)
  for _, value in ipairs(list) do
    if is_wanted(value) then return value end
  end
end

-- The first result of of(value) for the values of a list that is neither nil nor false; or nil.
function sequences.first(list, of)
  for _, value in ipairs(list) do
    local found = of(value)
    if found then return found end
  end
end

-- The value of a list with the largest number of(value), the first of equal ones; nil of an empty list.
function sequences.largest(list, of)
  local best, most
  for _, value in ipairs(list) do
    local number = of(value)
    if not most or number > most then best, most = value, number end
  end
  return best
end

-- The first value of a list with this `name`; or nil.
function sequences.named(list, name)
  return sequences.find(list, function(value) return value.name == name end)
end

-- Whether is_such(value) is true for any value of a list.
function sequences.any(list, is_such)
  for _, value in ipairs(list) do
    if is_such(value) then return true end
  end
  return false
end

-- Whether is_such(value) is true for all values of a list.
function sequences.all(list, is_such)
  return not sequences.any(list, function(value) return not is_such(value) end)
end

-- The values of a list, each once, in the order of their first places.
function sequences.distinct(list) return ordering.add_new({}, list) end

-- The values of a list as the keys of a set.
function sequences.set(list)
  local set = {}
  for _, value in ipairs(list) do set[value] = true end
  return set
end

-- The values of a list as the keys of a map to their indices.
function sequences.indices(list)
  local index_of = {}
  for i, value in ipairs(list) do index_of[value] = i end
  return index_of
end

-- Appends the values of another list, and returns the first list.
function sequences.append(list, other) return table.move(other, 1, #other, #list + 1, list) end

-- A new list with the values of several lists: those that of(value) returns for the values of `lists`, or,
-- without `of`, those in `lists` itself.
function sequences.join(lists, of)
  local out = {}
  for _, value in ipairs(lists) do sequences.append(out, of and of(value) or value) end
  return out
end

-- A new table with these fields of a table.
function sequences.pick(from, fields)
  local out = {}
  for _, field in ipairs(fields) do out[field] = from[field] end
  return out
end

-- A new table with the fields of these tables; of fields with one name, that of the last table.
function sequences.merged(...)
  local out = {}
  for _, from in ipairs { ... } do
    for key, value in pairs(from) do out[key] = value end
  end
  return out
end

-- The number of keys of a map.
function sequences.count(map)
  local count = 0
  for _ in pairs(map) do count = count + 1 end
  return count
end

-- The table that a map has for a key; for a new key a new table, which the map then has.
function sequences.at(map, key)
  map[key] = map[key] or {}
  return map[key]
end

-- The value of `map` for a key. For a new key it is make(), which joins the list.
function sequences.entry(list, map, key, make)
  if map[key] == nil then
    map[key] = make()
    list[#list + 1] = map[key]
  end
  return map[key]
end

return sequences
