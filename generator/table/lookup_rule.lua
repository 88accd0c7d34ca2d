-- How readers of the tables find the cell that answers for a shape: the C header by borders, TensorRT-LLM by
-- the floor of log2. The header's template and the pages take it from here.
--
--   lookup.borders{ 64, 256 } -> { 128, 2147483647 }: the largest size that each value answers for
--   lookup.nearest({ 64, 256 }, 100) -> 1: the place of the value that answers, by these borders
--   lookup.floor({ 64, 256 }, 100) -> 1: the place of the largest that is not above it; nil below all
local lookup = {}

lookup.largest = 2147483647

-- The largest number whose square is at most a * b: numbers up to it are at least as near to a as to b, as
-- ratios. Both are below 2^32; products are compared as numbers without a sign.
local function border(a, b)
  local product = a * b
  local root = math.tointeger(math.floor(math.sqrt(a) * math.sqrt(b)))
  while math.ult(product, root * root) do root = root - 1 end
  while not math.ult(product, (root + 1) * (root + 1)) do root = root + 1 end
  return root
end

-- The borders of an ascending axis.
function lookup.borders(axis)
  local out = {}
  for i = 1, #axis - 1 do out[i] = border(axis[i], axis[i + 1]) end
  out[#axis] = lookup.largest
  return out
end

function lookup.nearest(axis, value)
  for i = 1, #axis - 1 do
    if value * value <= axis[i] * axis[i + 1] then return i end
  end
  return #axis
end

function lookup.floor(axis, value)
  for i = #axis, 1, -1 do
    if axis[i] <= value then return i end
  end
end

return lookup
