-- The rows of AMD's own table in a file for RCCL's tuner. RCCL reads one table only: a file replaces AMD's as
-- a whole. So rccl_tuner_{arch}.csv has our rows first, and then AMD's, which are kept beside the measured
-- rows as rccl_defaults.{arch}.csv. That file is empty if AMD has no table for the arch.
--
-- rccl.lacks(source) gives what is missing, as text; rccl.own_rows(source) AMD's rows, as lines.
local fail = require "base.fail"
local file = require "core.file"
local sequences = require "base.sequences"

local rccl = {}

-- RCCL splits longer lines.
local MOST_CHARACTERS = 255
local COLLECTIVES = sequences.set { "broadcast", "reduce", "allgather", "reducescatter", "allreduce" }
local ALGORITHMS = sequences.set { "tree", "ring", "collnet_direct", "collnet_chain", "nvls", "nvls_tree",
  "pat" }
local PROTOCOLS = sequences.set { "ll", "ll128", "simple" }

local function path_of(source) return ("%s/rccl_defaults.%s.csv"):format(source.data_dir, source.arch) end

function rccl.lacks(source)
  if file.exists(path_of(source)) then return nil end
  return ("no %s: a file replaces AMD's own table, so it carries AMD's rows along; copy " ..
    "share/rccl/tuner/rccl_tuner_%s.csv of ROCm, or an empty file if ROCm has none, to that name"):format(
    path_of(source), source.arch)
end

-- The reason for which RCCL would skip or misread a line; nil: none.
local function fault_of(line)
  local fields = {}
  for field in (line .. ","):gmatch("([^,]*),") do fields[#fields + 1] = field:match("^%s*(.-)%s*$") end
  if #line > MOST_CHARACTERS then return ("%d characters; maximum %d"):format(#line, MOST_CHARACTERS) end
  if #fields < 8 or #fields > 10 then return ("%d fields; 8 to 10 are required"):format(#fields) end
  if not COLLECTIVES[fields[1]] then return "unknown collective " .. fields[1] end
  if not ALGORITHMS[fields[4]] then return "unknown algorithm " .. fields[4] end
  if not PROTOCOLS[fields[5]] then return "unknown protocol " .. fields[5] end
  for i, field in ipairs(fields) do
    if i ~= 1 and i ~= 4 and i ~= 5 and not field:find("^%-?%d+$") then
      return ("%q is no whole number"):format(field)
    end
  end
end

function rccl.own_rows(source)
  local path, lines, number = path_of(source), {}, 0
  local text = fail.unless(file.read(path)):gsub("\r\n", "\n")
  if text ~= "" and text:sub(-1) ~= "\n" then fail.input("%s: cut off: its last line has no end", path) end
  for line in text:gmatch("([^\n]*)\n") do
    number = number + 1
    if line:find("^%s*[^#%s]") then
      local fault = fault_of(line)
      if fault then fail.input("%s:%d: %s", path, number, fault) end
      lines[#lines + 1] = line
    end
  end
  return lines
end

return rccl
