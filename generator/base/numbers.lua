-- Texts to numbers and back. Only plain decimal numbers are read: no hexadecimal, no blanks, no infinity.
local numbers = {}

-- The whole number of [least, most] in a text, or nil. `least` is 1 by default, `most` the largest signed
-- number of 32 bits.
function numbers.whole(text, least, most)
  local number = tostring(text):find("^%-?%d+$") and math.tointeger(tonumber(text))
  return number and number >= (least or 1) and number <= (most or 0x7fffffff) and number or nil
end

local SHIFTS = { [""] = 0, K = 10, M = 20, G = 30 }

-- The whole number of [least, most] in a text, which may end in K, M or G (powers of 1024; also KB, KiB; in
-- capitals or not); or nil.
function numbers.size(text, least, most)
  local digits, unit = tostring(text):upper():match("^(%d+)(%u*)$")
  local shift = unit and SHIFTS[unit:gsub("(%u)I?B$", "%1")]
  local value = shift and math.tointeger(tonumber(digits))
  if not value or value > math.maxinteger >> shift then return nil end
  return numbers.whole(value << shift, least, most)
end

-- The finite number in a text, or nil.
function numbers.finite(text)
  local number = tostring(text):find("^[+-]?[%d.]+[eE]?[+-]?%d*$") and tonumber(text)
  return number and number - number == 0 and number or nil
end

-- Whether a number that begins with this text differs from it by less than 1 %: as number_is_precise of
-- codec/number.h.
function numbers.is_precise(text)
  local _, points = text:gsub("%.", "")
  return points == 1 and text:find("^[%d.]+$") ~= nil and #text:gsub("%.", ""):gsub("^0+", "") >= 3
end

return numbers
