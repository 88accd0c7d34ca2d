-- sorted_keys(map) -> its keys in ascending order. The order of pairs varies, and equal input must give equal
-- output.
return function(map)
  local keys = {}
  for key in pairs(map) do keys[#keys + 1] = key end
  table.sort(keys)
  return keys
end
