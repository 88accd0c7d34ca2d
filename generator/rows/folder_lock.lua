-- Locks for files that are read, changed and written again: of two runs at once, the later one reads what the
-- earlier one wrote, and pairs of files stay pairs.
--
--   local lock <close> = folder_lock.take("tuned")
--
-- The end of the block, or an error, unlocks the folder. The lock is the file .lock there; it exists only
-- while a run holds it, or after a run that was killed.
local fail = require "base.fail"
local system = require "core.system"

local folder_lock = {}
folder_lock.__index = folder_lock

local PATIENCE = 60 -- seconds; a lock is held while files are read, a table is chosen, and files are written
local PATIENCE_WITH_RANKS = 5 -- seconds; the ranks of a killed sweep hold its lock until they end
local ESTALE = 116 -- of system.lock: the run that held the lock has removed the file
local NO_WAY = { [2] = true, [13] = true, [30] = true } -- ENOENT, EACCES, EROFS

-- Locks a folder. Waits for a run that holds it. Returns nil if the folder does not exist or cannot be
-- written. Raises an error if another run holds it for more than 60 s.
function folder_lock.take(folder)
  local path = folder .. "/.lock"
  local locked, message, code
  repeat
    local handle, problem, reason = io.open(path, "a")
    handle = handle or io.open(path, "r") -- of another user
    if not handle and NO_WAY[reason] then return nil end
    if not handle then fail.work("%s", problem) end
    local can_lock
    can_lock, locked, message, code = pcall(system.lock, handle, PATIENCE)
    if not can_lock then
      os.remove(path)
      error(locked, 0)
    end
    if locked then return setmetatable({ handle = handle, path = path }, folder_lock) end
    handle:close()
  until code ~= ESTALE
  fail.work("%s: %s; another gentables writes files there: wait for its end", path, message)
end

-- Raises if a sweep is measuring the rows at `csv`: it would replace what others write there. Else returns
-- the locked journal of an interrupted sweep, to be closed; nil without one.
function folder_lock.of_rows(csv)
  local journal = io.open(csv .. ".part", "r+")
  if journal and not system.lock(journal, PATIENCE_WITH_RANKS) then
    journal:close()
    fail.work("%s: a sweep is measuring these rows; wait for its end, or use another --out", csv)
  end
  return journal
end

-- The file is removed before it is unlocked: a run that waits for it finds it removed, and makes another.
folder_lock.__close = function(self)
  os.remove(self.path)
  self.handle:close()
end

return folder_lock
