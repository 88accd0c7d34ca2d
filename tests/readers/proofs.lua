-- Prints the names of the tests that show that readers obey our files; each name once, in the order of the
-- list of formats.
local formats = require "formats.list"
local named = {}
for _, format in ipairs(formats.list) do
  for _, name in ipairs(formats.tests_of(format)) do
    if not named[name] then print(name) end
    named[name] = true
  end
end
