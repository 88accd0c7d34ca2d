-- Texts of foreign origin: bytes that are no UTF-8, and words with typing errors.
local text = {}

-- Replaces each byte that is no part of a character of UTF-8 by U+FFFD.
function text.valid_utf8(bytes)
  local out, at = {}, 1
  while at <= #bytes do
    local _, bad = utf8.len(bytes, at)
    if not bad then
      if at == 1 then return bytes end
      out[#out + 1] = bytes:sub(at)
      break
    end
    out[#out + 1] = bytes:sub(at, bad - 1) .. "\u{FFFD}"
    at = bad + 1
  end
  return table.concat(out)
end

-- The number of letters to insert, delete, replace, or exchange with the next one, that turn `a` into `b`.
local function changes(a, b)
  local before, last = {}, {}
  for j = 0, #b do last[j] = j end
  for i = 1, #a do
    local row = { [0] = i }
    for j = 1, #b do
      local cost = a:byte(i) == b:byte(j) and 0 or 1
      row[j] = math.min(last[j] + 1, row[j - 1] + 1, last[j - 1] + cost)
      if i > 1 and j > 1 and a:byte(i) == b:byte(j - 1) and a:byte(i - 1) == b:byte(j) then
        row[j] = math.min(row[j], before[j - 2] + 1)
      end
    end
    before, last = last, row
  end
  return last[#b]
end

local LONGEST = 40 -- letters of a word that may be a name with typing errors

-- The end of a message about an unknown word: the name that it probably means, in the form of `format`; "" if
-- no name is near. A name is near if a third of its letters differ at most, or if the word is its beginning.
function text.did_you_mean(word, names, format)
  local best, least
  for _, name in ipairs(#word <= LONGEST and names or {}) do
    local count = #word >= 2 and name:sub(1, #word) == word and 1 or changes(word:lower(), name:lower())
    if count <= math.max(1, #name // 3) and (not least or count < least) then best, least = name, count end
  end
  return best and (" (did you mean %s?)"):format((format or "%s"):format(best)) or ""
end

return text
