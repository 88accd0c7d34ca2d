-- A lock of a folder, for files that are read, changed and written again: two runs at once lose nothing.
--
--   local lock <close> = folder_lock.take("tuned")
--
-- The end of the block, or an error, unlocks the folder. The lock is the file .lock there; it exists only
-- while a run holds it, or after a run that was killed.
local fail = require "base.fail"
local system = require "core.system"

local folder_lock = {}
folder_lock.__index = folder_lock

local PATIENCE = 10 -- seconds; a lock is held while a few files are read and written
local ESTALE = 116 -- of system.lock: the run that held the lock has removed the file

-- Locks an existing folder. Waits for a run that holds it. Raises an error if the folder cannot be written,
-- or another run holds it for more than 10 s.
function folder_lock.take(folder)
  local path = folder .. "/.lock"
  local locked, message, code
  repeat
    local handle, problem = io.open(path, "a")
    if not handle then fail.work("%s", problem) end
    locked, message, code = system.lock(handle, PATIENCE)
    if locked then return setmetatable({ handle = handle, path = path }, folder_lock) end
    handle:close()
  until code ~= ESTALE
  fail.work("%s: %s; another gentables writes files there: wait for its end", path, message)
end

-- The file is removed before it is unlocked: a run that waits for it finds it removed, and makes another.
folder_lock.__close = function(self)
  os.remove(self.path)
  self.handle:close()
end

return folder_lock
