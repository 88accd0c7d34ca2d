-- gentables lua: runs a Lua script with the modules of gentables at hand (require "rows", require "table"
-- ...). For tests, and for people who want a picture or a table by their own script.
local fail = require "base.fail"

return {
  raw = true,
  summary = "Runs a Lua script with the modules of gentables at hand; `arg` holds what follows the name.",
  positional = { name = "SCRIPT [ARGUMENT...]", min = 1, max = 1 },
  example = "echo 'print(gentables.version)' > version.lua && gentables lua version.lua",
  run = function(argv)
    if not argv[1] then fail.input("lua needs a script; see gentables lua --help") end
    local script = fail.unless(loadfile(argv[1]))
    _G.arg = { [0] = argv[1], table.unpack(argv, 2) }
    local code = script(table.unpack(argv, 2))
    return math.type(code) == "integer" and code or 0
  end,
}
