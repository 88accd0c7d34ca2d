-- sorted_keys(map) -> its keys in a list, from the least to the most: pairs has no order, and the same input
-- is to give the same bytes.
return function(map)
  local keys = {}
  for key in pairs(map) do keys[#keys + 1] = key end
  table.sort(keys)
  return keys
end
