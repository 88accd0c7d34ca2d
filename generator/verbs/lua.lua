-- gentables lua: runs a Lua script that may require the modules of gentables (require "core.rows", require
-- "formats.model" ...). For tests, and for people who make a picture or a table by a script of their own.
local fail = require "base.fail"
local file = require "core.file"

return {
  raw = true,
  summary = "Runs a Lua script that may require the modules of gentables; `arg` has its arguments.",
  positional = { name = "SCRIPT [ARGUMENT...]", min = 1, max = 1 },
  example = "echo 'print(gentables.version)' > version.lua && gentables lua version.lua",
  run = function(argv)
    if not argv[1] then fail.input("lua needs a script; see gentables lua --help") end
    local text = fail.unless(file.read(argv[1])):gsub("^#[^\n]*", "") -- a first line for the shell
    local script = fail.unless(load(text, "@" .. argv[1]))
    _G.arg = { [0] = argv[1], table.unpack(argv, 2) }
    local code = script(table.unpack(argv, 2))
    return math.type(code) == "integer" and code or 0
  end,
}
