-- Names of kernels and ops on the page: those of templates have hundreds of characters.
local valid_utf8 = require("base.text").valid_utf8

local long_names = {}

local MOST = 96 -- characters

-- The name, shortened at its end.
function long_names.short(name)
  name = valid_utf8(name)
  if utf8.len(name) <= MOST then return name end
  return name:sub(1, utf8.offset(name, MOST) - 1) .. "…"
end

-- The name as a cell of a table, with the whole name as its hint; nil for an empty one.
function long_names.cell(name)
  if not name or name == "" then return nil end
  local short = long_names.short(name)
  return short == name and name or { text = short, title = name }
end

return long_names
