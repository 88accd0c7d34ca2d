-- Text of others in Markdown, such as the names in a provenance: as it is, never as markup.
local markdown = {}

local codes = { ["&"] = "&amp;", ["<"] = "&lt;", [">"] = "&gt;" }

-- The text, with the characters escaped that begin HTML, links, code, emphasis by stars, or a cell of a
-- table; line ends and other control characters become spaces. Underscores and tildes stay.
function markdown.escape(text)
  local out = tostring(text):gsub("%c", " "):gsub("[&<>]", codes):gsub("[\\`*%[%]|]", "\\%0")
  return out
end

return markdown
