-- gentables lua results.lua TUNED.json: every candidate with a time, as OP NAME LAUNCHES, one a line.
local file = require "core.file"
local json = require "codec.json"

for _, cell in ipairs(json.decode(file.read(arg[1])).cells) do
  for _, entry in ipairs(cell.candidates) do
    print(("%s %s %d"):format(cell.op, entry.strategy, #entry.launches_us))
  end
end
