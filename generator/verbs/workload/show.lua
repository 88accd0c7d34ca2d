-- gentables workload show: prints the GEMMs and collectives of a step for a number of ranks, without
-- measuring.
local common_options = require "workload.common_options"
local description = require "workload.description"
local json = require "codec.json"
local sequences = require "base.sequences"
local steps = require "workload.steps"

-- FLOPs of a step of each rank.
local function flops_of(program, ranks)
  local out = {}
  for rank = 1, ranks do out[rank] = 0 end
  for _, gemm in ipairs(program.gemms) do
    local function value(name, rank)
      local list = {}
      for number in gemm:match(" " .. name .. "=(%S+)"):gmatch("%d+") do
        list[#list + 1] = tonumber(number)
      end
      return list[rank] or list[1]
    end
    for rank = 1, ranks do
      out[rank] = out[rank] + 2 * value("m", rank) * value("n", rank) * value("k", rank)
    end
  end
  return out
end

-- The fields of request lines, for JSON.
local function rows_of(lines)
  return json.array(sequences.map(lines, function(line)
    local fields = {}
    for name, value in line:gmatch(" ([%w_]+)=(%S+)") do fields[name] = tonumber(value) or value end
    return fields
  end))
end

return {
  summary = "Shows the GEMMs and collectives of a step, without measuring.",
  options = {
    { name = "config", short = "f", value = "FILE", required = true, values = description.shipped,
      help = description.HELP },
    { name = "tp", short = "p", value = "N", type = "whole", least = 2,
      most = common_options.MOST_RANKS, default = 2, help = "number of ranks" },
    { name = "backend", value = "NAME", default = "host", help = "host or cuda" },
    { name = "json", help = "print JSON" },
  },
  example = "gentables workload show -f moe -p 2",
  run = function(args)
    local workload, ranks = description.load(args.config), args.tp
    local program = steps.of(workload, ranks, common_options.backend(args.backend))
    if args.json then
      print(json.encode { name = workload.name, gemms = rows_of(program.gemms),
        collectives = rows_of(program.collectives), flops = json.array(flops_of(program, ranks)) })
      return
    end
    print(("%s: %d GEMMs and %d collectives a step"):format(workload.name, #program.gemms,
      #program.collectives))
    for rank, flops in ipairs(flops_of(program, ranks)) do
      print(("rank %d: %.3f GFLOP"):format(rank - 1, flops / 1e9))
    end
    io.stdout:write("\n", steps.text(program))
  end,
}
