-- Numbers with units and nouns, as text.
local quantities = {}

-- A size in bytes, rounded to four digits.
function quantities.bytes(size)
  local units, unit = { "B", "KiB", "MiB", "GiB", "TiB" }, 1
  while size >= 1024 and unit < #units do size, unit = size / 1024, unit + 1 end
  return ("%.4g %s"):format(size, units[unit])
end

-- A size in bytes, exactly: in MiB or KiB if it is a multiple of that.
function quantities.exact_bytes(size)
  if size >= 1 << 20 and size % (1 << 20) == 0 then return (size >> 20) .. " MiB" end
  if size >= 1 << 10 and size % (1 << 10) == 0 then return (size >> 10) .. " KiB" end
  return size .. " B"
end

-- A number with about three digits and no exponent, for table cells and axis ticks.
function quantities.three_digits(value)
  if value >= 99999.5 then return ("%.0fk"):format(value / 1000) end
  if value >= 99.95 then return ("%.0f"):format(value) end
  if value >= 9.995 then return ("%.1f"):format(value) end
  return ("%.2f"):format(value)
end

-- A number with this many decimals; zero, also after rounding, has no sign.
function quantities.fixed(value, decimals)
  return (("%%.%df"):format(decimals):format(value):gsub("^%-(0%.?0*)$", "%1"))
end

-- A count with its noun in the singular or plural: "1 cell", "2 cells".
function quantities.counted(count, noun) return ("%d %s%s"):format(count, noun, count == 1 and "" or "s") end

-- Whole numbers in ascending order, with ranges: 0, 1, 2, 5 -> "0-2, 5".
function quantities.ranges(list)
  local parts, i = {}, 1
  while i <= #list do
    local j = i
    while list[j + 1] == list[j] + 1 do j = j + 1 end
    parts[#parts + 1] = j > i and ("%d-%d"):format(list[i], list[j]) or tostring(list[i])
    i = j + 1
  end
  return table.concat(parts, ", ")
end

return quantities
