-- gentables workload show: prints the GEMMs and collectives of a step for a number of ranks, without
-- measuring.
local common_options = require "workload.common_options"
local description = require "workload.description"
local json = require "codec.json"
local ordering = require "base.ordering"
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

-- The fields of request lines.
local function rows_of(lines)
  return json.array(sequences.map(lines, function(line)
    local fields = {}
    for name, value in line:gmatch(" ([%w_]+)=(%S+)") do fields[name] = tonumber(value) or value end
    return fields
  end))
end

-- The number of elements of a collective as its request has it; for an all_to_all the number that each rank
-- sends: one, if all are the same.
local function elements_of(row, ranks)
  if not row.matrix then return row.elements end
  local sent, number = {}, 0
  for elements in row.matrix:gmatch("%d+") do
    local rank = number // ranks + 1
    sent[rank], number = (sent[rank] or 0) + tonumber(elements), number + 1
  end
  return table.concat(sequences.distinct(sent)[2] and sent or { sent[1] }, ",")
end

-- Prints a table of texts and numbers; a column that begins with a number is aligned to the right.
local function print_table(heads, rows)
  local widths = sequences.map(heads, function(head) return #head end)
  for _, row in ipairs(rows) do
    for i, cell in ipairs(row) do widths[i] = math.max(widths[i], #tostring(cell)) end
  end
  for _, row in ipairs(sequences.join { { heads }, rows }) do
    local cells = sequences.map(row, function(cell, i)
      return ("%" .. (math.type(rows[1][i]) and "" or "-") .. widths[i] .. "s"):format(cell)
    end)
    print((table.concat(cells, "  "):gsub(" +$", "")))
  end
end

local function print_tables(program, ranks)
  print("\nGEMMs of a step; equal ones in one row; what differs by rank, separated by commas")
  local groups = ordering.groups(rows_of(program.gemms), function(row)
    return table.concat({ row.phase, row.name, row.m, row.n, row.k, row.layout, row.dtype }, " ")
  end)
  print_table({ "number", "phase", "name", "m", "n", "k", "layout", "dtype" },
    sequences.map(groups, function(group)
      local row = group[1]
      return { #group, row.phase, row.name, row.m, row.n, row.k, row.layout, row.dtype }
    end))
  if #program.collectives == 0 then return end
  print("\ncollectives of a step, with the elements of a rank")
  print_table({ "kind", "name", "elements", "dtype" },
    sequences.map(rows_of(program.collectives), function(row)
      return { row.kind, row.name, elements_of(row, ranks), row.dtype }
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
    print_tables(program, ranks)
  end,
}
