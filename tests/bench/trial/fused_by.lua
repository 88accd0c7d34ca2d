-- gentables lua fused_by.lua TUNED.json NAME: whether this candidate has a time fused, separate and alone.
local file = require "core.file"
local json = require "codec.json"

local found = {}
for _, entry in ipairs(json.decode(file.read(arg[1])).cells[1].candidates) do
  if entry.strategy == arg[2] then found[entry.epilogue] = true end
end
return found.fused and found.separate and found.alone and 0 or 1
