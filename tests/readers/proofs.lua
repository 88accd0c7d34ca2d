-- Prints the names of the tests that show that readers obey our files; each name once, in the order of the
-- list of formats.
local formats = require "formats.list"
local named = {}
for _, format in ipairs(formats.list) do
  local shown = format.shown
  for _, name in ipairs(shown and { shown.test, shown.real } or {}) do
    if not named[name] then print(name) end
    named[name] = true
  end
end
