-- A temporary folder that only this user can enter, for the files of one job.
--
--   local folder <close> = scratch.folder("gentables-lookup")
--   file.write(folder.path .. "/lookup.c", text)
--
-- The end of the block removes the folder with everything in it, an error too. All temporary folders are made
-- here: a name that is chosen first and made later could belong to another user by then.
local fail = require "base.fail"
local file = require "core.file"

local scratch = {}
scratch.__index = scratch

-- Makes a folder in TMPDIR (default: /tmp) whose name begins with `name`. Returns { path }, to be closed.
-- Raises if it cannot be made.
function scratch.folder(name)
  return setmetatable({ path = fail.unless(file.temporary_folder(name)) }, scratch)
end

-- Removes the folder with everything in it, as far as that can be removed.
function scratch:remove() file.remove_tree(self.path) end

scratch.__close = scratch.remove

return scratch
