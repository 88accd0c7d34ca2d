-- Texts of people and programs to numbers: plain decimal ones only, no hexadecimal, no blanks, no infinity.
local numbers = {}

-- A whole number of [least, most]; nil: the text is none. `least` is 1 by default, `most` the largest signed
-- number of 32 bits.
function numbers.whole(text, least, most)
  local number = tostring(text):find("^%-?%d+$") and math.tointeger(tonumber(text))
  return number and number >= (least or 1) and number <= (most or 0x7fffffff) and number or nil
end

-- A finite number; nil: the text is none.
function numbers.finite(text)
  local number = tostring(text):find("^[+-]?[%d.]+[eE]?[+-]?%d*$") and tonumber(text)
  return number and number - number == 0 and number or nil
end

return numbers
