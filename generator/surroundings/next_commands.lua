-- The commands that messages advise: in a clone where gentables was built, those of its scripts and targets;
-- for an installed gentables, where there may be no clone, those of the program.
local file = require "core.file"

local next_commands = {}

-- Whether the program is that of a build tree: its files are links into a clone.
function next_commands.has_clone()
  local generator = file.real_path(gentables.home .. "/generator")
  return generator ~= nil and file.exists(generator .. "/../cmake/dev.sh")
end

-- The command that measures CPU ranks.
function next_commands.measure_host()
  if next_commands.has_clone() then return "sh cmake/dev.sh gen-tables" end
  return ("%s sweep %s/tables/host/spec.lua --out data"):format(gentables.program, gentables.home)
end

-- The command that continues a sweep which its budget ended; nil: the usual words are right. `path`: of the
-- spec.
function next_commands.refine(path, out)
  if next_commands.has_clone() then return nil end
  return ("%s sweep %s --out %s --refine"):format(gentables.program, path, out)
end

-- How to build gentables again, with more of its parts.
function next_commands.build_again()
  if next_commands.has_clone() then return ":\n  cmake --preset default && cmake --build build\n" end
  return " from its sources, and install it\n"
end

return next_commands
