-- The fields of a row of a kernel summary in CSV: times with or without a unit, numbers of calls, names.
--
--   kernel_fields.exponent(unit) -> the power of ten that makes it nanoseconds | nil
--   kernel_fields.row(line, header) -> { [header.what[i]] = value of field i } | nil, message
--
-- header.kinds[i] is the kind of field i ("skip", "time", "count", "name"), header.exponents[i] the unit of a
-- time without a unit of its own.
local csv = require "core.csv"

local kernel_fields = {}

local MOST_DIGITS = 18 -- more decimal digits may not fit into 64 bits
local FULL = 10 ^ 17 -- numbers from this one on take no further digit
local SHOWN = 40 -- bytes of a wrong field

-- The micro sign is U+00B5 or the Greek letter U+03BC; in Latin-1 it is the byte B5 alone.
local exponents = { ns = 0, us = 3, ["\u{B5}s"] = 3, ["\u{3BC}s"] = 3, ["\xB5s"] = 3, ms = 6, s = 9, nsec = 0,
  usec = 3, msec = 6, sec = 9 }

-- Without the spaces and the no-break spaces (U+00A0, U+202F) at its beginning.
local function without_spaces(text)
  local rest = text:gsub("^[ \t]+", ""):gsub("^\u{A0}", ""):gsub("^\u{202F}", "")
  return rest == text and rest or without_spaces(rest)
end

function kernel_fields.exponent(unit) return exponents[(without_spaces(unit):gsub(" +$", ""))] end

-- The digits at the beginning of a text as a number, in groups of three after commas or all in a row, and the
-- text after them; nil for anything else, and for too many digits.
local function read_whole(text)
  local whole, rest = text:match("^([%d,]+)(.*)$")
  if not whole then return nil end
  local first, groups = whole:match("^(%d+)(.*)$")
  local are_threes = groups == "" or groups and #first <= 3 and groups:gsub(",%d%d%d%f[^%d]", "") == ""
  if not are_threes then return nil end
  local digits = whole:gsub(",", ""):gsub("^0+", "")
  if #digits > MOST_DIGITS then return nil end
  return math.tointeger(tonumber(digits)) or 0, rest
end

-- digits[.digits][e[+-]digits] at the beginning of a text as mantissa * 10^exponent, and the text after it;
-- or nil. Skips a fraction's digits beyond MOST_DIGITS, which do not change the number.
local function read_decimal(text)
  local mantissa, rest = read_whole(text)
  if not mantissa then return nil end
  local exponent, fraction, behind = 0, rest:match("^%.(%d*)(.*)$")
  for digit in (fraction or ""):gmatch("%d") do
    if mantissa >= FULL or exponent == -MOST_DIGITS then break end
    mantissa, exponent = mantissa * 10 + tonumber(digit), exponent - 1
  end
  rest = behind or rest
  if not rest:find("^[eE]") then return mantissa, exponent, rest end
  local power
  power, rest = rest:match("^[eE]([+-]?%d%d?%d?)(.*)$")
  if not power then return nil end
  return mantissa, exponent + math.tointeger(tonumber(power)), rest
end

-- mantissa * 10^exponent, an integer if it is whole; nil if it is too large. It divides at most once, so the
-- result is the nearest number.
local function number_of(mantissa, exponent)
  local function power(of) return math.tointeger(10 ^ of) end
  for _ = exponent, -MOST_DIGITS - 1 do mantissa = mantissa // 10 end
  exponent = math.max(exponent, -MOST_DIGITS)
  if exponent < 0 then
    return mantissa % power(-exponent) == 0 and mantissa // power(-exponent) or mantissa / power(-exponent)
  end
  if mantissa == 0 then return 0 end
  if exponent > MOST_DIGITS or mantissa > power(MOST_DIGITS - exponent) then return nil end
  return mantissa * power(exponent)
end

-- The value of a field of each kind; or nil, and the end of the message about it.
local read = {}

-- `exponent`: that of the column's unit, or nil; the field's own unit comes first.
function read.time(field, exponent)
  local mantissa, power, rest = read_decimal(field)
  if not mantissa then return nil, " is not a time" end
  rest = without_spaces(rest)
  if rest ~= "" then exponent = kernel_fields.exponent(rest) end
  if not exponent then
    return nil, (rest == "" and " and its column have no unit" or " has an unknown unit")
      .. "; valid: ns, us, ms, s"
  end
  local time = number_of(mantissa, power + exponent)
  return time, not time and " is longer than any time" or nil
end

function read.count(field)
  local count, rest = read_whole(field)
  if rest == "" and count > 0 then return count end
  return nil, " is not a number of calls"
end

function read.name(field)
  if field ~= "" then return field end
  return nil, " is not the name of a kernel"
end

function kernel_fields.row(line, header)
  local fields, message = csv.fields(line)
  if not fields then return nil, message end
  local kernel = {}
  for i = 1, math.min(#fields, #header.kinds) do
    if header.kinds[i] ~= "skip" then
      local value, problem = read[header.kinds[i]](fields[i], header.exponents[i])
      if problem then return nil, ('"%s"%s'):format(fields[i]:sub(1, SHOWN), problem) end
      kernel[header.what[i]] = value
    end
  end
  if #fields == #header.kinds then return kernel end
  return nil, ("%d fields, but %d in the header; the file may be cut off"):format(#fields, #header.kinds)
end

return kernel_fields
