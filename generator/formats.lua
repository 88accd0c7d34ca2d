-- The list of artifacts that are made from rows: a row each, and the one loop over them is in generate.lua
-- and check.lua.
--
-- How to add a format: a template below templates/ (see template.lua for its language, model.lua for what it
-- sees) and a row here:
--   name      what --formats calls it
--   file      its name in the folder of tables
--   template  the template; or text = function(model) -> text where no template is needed
--   reader    who reads it, for help and the report
--   archs     function(row of lists.archs) -> whether such an arch has it; absent: every arch has
--   why_not   said where it is asked for and the arch has none
--   plane     it has no axis for dtype, op and mode: it holds those of the spec's `table`
--   scope     "all": made of all SM versions of a folder (--arch all), not of one arch
--   per_tp    one file for each TP size: `file` has {tp}, the template sees `world`
--   view      function(source, format) -> what the template sees, in place of model.for_format: { worlds... }
--   lacks     function(source) -> what has to be measured first, or nil; where it is, the format is left out
--   names     function(row of lists.strategies) -> whether it can name the strategy; absent: all. Only these
--             compete
--   left_out  function(model) -> list of lines: what it leaves out beside that; the report says them
local lists = require "lists"

local formats = {}

-- What stands for all SM versions of a folder, beside the archs of lists.archs.
formats.all_archs = { name = "all", scope = "all" }

-- TensorRT-LLM's grid; its table has these cells and no others.
formats.trtllm_grid = {
  tp = { 2, 4, 8 },
  hidden_sizes = { 128, 256, 512, 1024, 2048, 4096, 8192 },
  num_tokens = { 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384 },
}

-- The values of `list` that are not in `known`.
local function others(list, known)
  local out = {}
  for _, value in ipairs(list) do
    if not lists.contains(known, value) then out[#out + 1] = value end
  end
  return out
end

-- "1 row", "2 rows"
function formats.counted(count, noun) return ("%d %s%s"):format(count, noun, count == 1 and "" or "s") end

local function trtllm_leaves_out(model)
  local grid, lines = formats.trtllm_grid, {}
  for _, world in ipairs(model.worlds) do
    if not lists.contains(grid.tp, world.tp) then
      lines[#lines + 1] = ("TP %d: its table has TP %s"):format(world.tp, table.concat(grid.tp, ", "))
    else
      for _, axis in ipairs { { "hidden_sizes", "hidden size" }, { "num_tokens", "token count" } } do
        local off = others(world[axis[1]], grid[axis[1]])
        if #off > 0 then
          lines[#lines + 1] = ("TP %d: %s not on its grid"):format(world.tp, formats.counted(#off, axis[2]))
        end
      end
    end
  end
  for _, tp in ipairs(grid.tp) do
    if not model.world_of[tp] then
      lines[#lines + 1] = ("TP %d was not measured: every cell reads 8, NCCL_SYMMETRIC"):format(tp)
    end
  end
  return lines
end

formats.list = {
  { name = "trtllm", file = "generated_lookup_table.cpp", template = "tables/generated_lookup_table.cpp.tmpl",
    reader = "TensorRT-LLM: the table in customAllReduceUtils.h",
    archs = function(arch) return arch.sm end,
    why_not = "TensorRT-LLM has tables for smXX only",
    plane = true,
    names = function(strategy) return strategy.trtllm ~= nil end,
    left_out = trtllm_leaves_out },
  { name = "trtllm-header", file = "customAllReduceUtils.h", template = "tables/customAllReduceUtils.h.tmpl",
    reader = "TensorRT-LLM: cpp/tensorrt_llm/common/customAllReduceUtils.h, whole",
    scope = "all",
    why_not = "it is made of all smXX together: --arch all",
    names = function(strategy) return strategy.trtllm ~= nil end,
    view = function(...) return require("trtllm").view(...) end },
  { name = "c", file = "allreduce_table.h", template = "tables/allreduce_table.h.tmpl",
    reader = "any C or C++ program",
    plane = true },
  { name = "table", file = "table.csv",
    text = function(model) return model.canonical:text(model.arch) end,
    reader = "gentables, spreadsheets: every dtype, op and mode" },
  { name = "picture", file = "best_strategy.svg", template = "reports/best_strategy.svg.tmpl",
    reader = "people: which strategy is best where; report.md shows it",
    plane = true },
  { name = "report", file = "report.md", template = "reports/report.md.tmpl",
    reader = "people" },
}

-- The names of all formats, or of those that an arch (a row of lists.archs) has.
function formats.names(arch)
  local names = {}
  for _, format in ipairs(formats.list) do
    if not arch or formats.is_for(format, arch) then names[#names + 1] = format.name end
  end
  return names
end

function formats.find(name)
  for _, format in ipairs(formats.list) do
    if format.name == name then return format end
  end
end

-- The row of lists.archs, or all_archs.
function formats.arch(name) return name == formats.all_archs.name and formats.all_archs or lists.arch(name) end

-- Whether the arch (a row of lists.archs, or all_archs) has this format.
function formats.is_for(format, arch)
  if format.scope ~= arch.scope then return false end
  return format.archs == nil or format.archs(arch) == true
end

return formats
