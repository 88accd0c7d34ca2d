-- What is wrong with a file that differs from what the rows give, as one line with file and line: it is cut
-- off, for another version or machine than its reader's file is made for (the `marks` of its format), or
-- edited, or made of other rows.
local file_fault = {}

local HEAD_BYTES = 1 << 14 -- which have the marks of a file

-- The number of the line with the byte at `at`.
local function line_at(text, at)
  local _, count = text:sub(1, math.max(at - 1, 0)):gsub("\n", "")
  return count + 1
end

-- The first byte in which two texts differ.
local function first_difference(old, new)
  local low, high = 0, math.min(#old, #new)
  while low < high do
    local middle = (low + high + 1) // 2
    if old:sub(1, middle) == new:sub(1, middle) then low = middle else high = middle - 1 end
  end
  return low + 1
end

-- The first mark that differs: its line, and a message about it; nil for none. A mark that `old` lacks
-- belongs where `new` has it.
local function wrong_mark(marks, old, new)
  old, new = old:sub(1, HEAD_BYTES), new:sub(1, HEAD_BYTES)
  for _, mark in ipairs(marks) do
    local at, value = old:match(mark.pattern)
    local new_at, required = new:match(mark.pattern)
    if required and value ~= required then
      local line = at and line_at(old, at) or line_at(new, new_at)
      return line, ("%s %s; %s is required"):format(mark.name, value or "is missing", required)
    end
  end
end

-- "PATH:LINE: what is wrong" of the text `old` of a file of which the rows give `new`. `marks`: { name,
-- pattern with two captures, where the value is and the value }... (nil: none).
function file_fault.of(path, old, new, marks)
  if #old < #new and new:sub(1, #old) == old then
    return ("%s:%d: ends here; it is half-written"):format(path, line_at(old, #old))
  end
  local line, words = wrong_mark(marks or {}, old, new)
  if words then return ("%s:%d: %s"):format(path, line, words) end
  return ("%s:%d: differs from what the rows give; it was edited, or is of other rows"):format(path,
    line_at(old, first_difference(old, new)))
end

return file_fault
