-- Parts of pages, or of headers, that are rendered from a list: the text between the lines
--
--   <!-- NAME: rendered from LIST -->       // NAME: rendered from LIST
--   <!-- end of NAME -->                    // end of NAME
local file = require "core.file"

-- Whether the part of the page at `path` is `text`. With `writes` the part becomes it. Raises if the page has
-- no such part.
return function(path, name, text, writes)
  local page = assert(file.read(path))
  local _, head = page:find("[<!/-]+ " .. name .. ": rendered from [^\n]*\n")
  local tail = page:find(" *[<!/-]+ end of " .. name)
  assert(head and tail, path .. ": has no part " .. name)
  if page:sub(head + 1, tail - 1) == text then return true end
  if not writes then return false end
  assert(file.write(path, page:sub(1, head) .. text .. page:sub(tail)))
  return true
end
