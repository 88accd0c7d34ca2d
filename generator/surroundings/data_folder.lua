-- The folder and the arch of the rows of a command that names neither: ./data, else the current folder, if it
-- has benchmark files.
local detection = require "surroundings.detection"
local ordering = require "base.ordering"
local rank_placement = require "lists.rank_placement"
local rows_folder = require "rows.rows_folder"
local file = require "core.file"
local lists = require "lists.lists"
local sequences = require "base.sequences"

local data_folder = {}

local PLACES = { "data", "." }
-- The argument of verbs with --data-dir, which is the same as that option.
data_folder.positional = { name = "DIR", min = 0, max = 1, option = "data-dir",
  help = "the same as --data-dir DIR" }

data_folder.IN_WORDS = "./data or the current folder"

-- Whether a folder has rows of the arch, of any if it is nil, or of any SM version if it is `all`.
local function has_rows(folder, arch)
  if not file.list(folder) then return false end
  if arch == lists.all_archs.name then return rows_folder.has_parts(folder) end
  local archs = rows_folder.archs(folder)
  return arch and lists.contains(archs, arch) or not arch and #archs > 0
end

-- The first of the places that has such rows; nil: none has.
function data_folder.find(arch)
  return sequences.find(PLACES, function(folder) return has_rows(folder, arch) end)
end

-- The arch of the rows in a folder: the only one; of several, that of this machine's GPUs. Raises if there is
-- no such one.
function data_folder.arch(folder, option_of)
  local archs = rows_folder.archs(folder)
  local sm = #archs > 1 and detection.sm() or nil
  local own = sm and ("sm%d"):format(sm)
  return own and lists.contains(archs, own) and own
    or rows_folder.only_arch(folder, nil, nil, option_of)
end

-- Prints the rows that a command found by itself.
function data_folder.print(folder, arch)
  if arch == lists.all_archs.name then
    for _, part in ipairs(rows_folder.parts(folder)) do data_folder.print(part.folder, part.arch) end
    return
  end
  local sizes = {}
  for _, entry in ipairs(rows_folder.files(folder, arch)) do
    ordering.add_new(sizes, { rank_placement.size_of { world_size = entry.tp, nodes = entry.nodes } })
  end
  io.stdout:write(("%-10s%s: %s, TP %s\n"):format("rows", folder, arch, table.concat(sizes, ", ")))
end

return data_folder
