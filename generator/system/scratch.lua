-- A temporary folder that only this user can enter, for the files of one job.
--
--   local folder <close> = scratch.folder("gentables-lookup")
--   file.write(folder.path .. "/lookup.c", text)
--
-- The end of the block, or an error, removes the folder and its content. All temporary folders are made here,
-- because a folder with a name that was chosen earlier could belong to another user.
local fail = require "base.fail"
local file = require "core.file"

local scratch = {}
scratch.__index = scratch

-- Makes a folder in TMPDIR (default: /tmp) with a name that begins with `name`. Returns { path }, to be
-- closed. Raises an error if it cannot be made.
function scratch.folder(name)
  return setmetatable({ path = fail.unless(file.temporary_folder(name)) }, scratch)
end

-- Removes the folder and its content, as far as possible.
function scratch:remove() file.remove_tree(self.path) end

scratch.__close = scratch.remove

return scratch
