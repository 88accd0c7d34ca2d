-- Lists in order and in groups.
local ordering = {}

-- The keys of a map in ascending order. The order of pairs varies, and equal input must give equal output.
function ordering.sorted_keys(map)
  local keys = {}
  for key in pairs(map) do keys[#keys + 1] = key end
  table.sort(keys)
  return keys
end

-- A comparison for table.sort by these fields of two tables: the first that differs decides. Ascending; with
-- "-" before its name, descending. Before all values comes an absent one.
function ordering.by(...)
  local fields = {}
  for i, field in ipairs { ... } do fields[i] = { field:match("^(%-?)(.*)$") } end
  return function(a, b)
    for _, field in ipairs(fields) do
      local x, y = a[field[2]], b[field[2]]
      if x ~= y then
        if field[1] == "-" then x, y = y, x end
        return x == nil or y ~= nil and x < y
      end
    end
    return false
  end
end

-- Sorts a list as table.sort does, and returns it.
function ordering.sort(list, before)
  table.sort(list, before)
  return list
end

-- Sorts by number(item), descending; equal items stay in order. Returns the list.
function ordering.falling(items, number)
  local index_of = {}
  for i, item in ipairs(items) do index_of[item] = i end
  table.sort(items, function(a, b)
    local of_a, of_b = number(a), number(b)
    if of_a ~= of_b then return of_a > of_b end
    return index_of[a] < index_of[b]
  end)
  return items
end

-- The items with equal keys, in order of first appearance: lists with `key`. An item without key_of(item) is
-- left out.
function ordering.groups(items, key_of)
  local groups, of_key = {}, {}
  for _, item in ipairs(items) do
    local key = key_of(item)
    if key ~= nil and not of_key[key] then
      of_key[key] = { key = key }
      groups[#groups + 1] = of_key[key]
    end
    if key ~= nil then table.insert(of_key[key], item) end
  end
  return groups
end

-- Appends the items of another list that the list does not have. Returns the list.
function ordering.add_new(list, items)
  local has = {}
  for _, item in ipairs(list) do has[item] = true end
  for _, item in ipairs(items) do
    if not has[item] then list[#list + 1] = item end
    has[item] = true
  end
  return list
end

return ordering
