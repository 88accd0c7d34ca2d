-- Serving metrics: one key of the result files of a run (TTFT, TPOT, ITL, throughputs), as the mean over its
-- files (serving/result.lua). Several runs make a table.
local json = require "codec.json"
local result = require "serving.result"

local serving = {}

local function print_json(row, runs)
  for _, run in ipairs(runs) do run.metric, run.unit = row.name, row.unit end
  io.stdout:write(json.encode(#runs == 1 and runs[1] or json.array(runs)), "\n")
end

local function print_table(row, runs)
  local cells, width = {}, #row.name
  for i, run in ipairs(runs) do
    cells[i] = json.encode(run.mean)
    width = math.max(width, #cells[i])
  end
  io.stdout:write(("%" .. width .. "s  %5s  %s\n"):format(row.name, "files", "folder"))
  for i, run in ipairs(runs) do
    io.stdout:write(("%" .. width .. "s  %5d  %s\n"):format(cells[i], run.count, run.folder))
  end
end

function serving.run(args, row)
  local runs = {}
  for i, dir in ipairs(args.trace) do runs[i] = result.read(dir:gsub("(.)/+$", "%1"), row) end
  if args.json then return print_json(row, runs) end
  if #runs > 1 then return print_table(row, runs) end
  io.stdout:write(json.encode(runs[1].mean), "\n")
end

return serving
