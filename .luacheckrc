-- What luacheck holds all Lua here to; CI checks it.
std = "lua54"
globals = { "gentables" }
max_line_length = 110
unused_args = true
