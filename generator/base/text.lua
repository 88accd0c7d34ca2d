-- Texts of foreign origin: bytes that are no UTF-8.
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

return text
