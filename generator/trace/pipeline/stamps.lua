-- Existing products of a pipeline and their inputs: a stamp for each product, in a folder of the output tree.
-- A product is current if its stamp is that of today's inputs and options and its files exist, including
-- those of its folders. A stamp is written after the files, so that an interrupted run leaves none.
local fail = require "base.fail"
local file = require "core.file"
local system = require "core.system"

local stamps = {}
stamps.__index = stamps

-- Seconds to wait for the lock: the children of a killed run hold it until they end.
local PATIENCE = 4

-- The stamps in this folder, which is made and locked against another run.
function stamps.open(folder)
  local made, message = file.make_folder(folder)
  if not made then fail.input("%s; give another --out", message) end
  local lock
  lock, message = io.open(folder .. "/lock", "a")
  if not lock then fail.input("%s; give another --out", message) end
  if not system.lock(lock, PATIENCE) then fail.work("%s: another run is using this folder", folder) end
  return setmetatable({ folder = folder, lock = lock }, stamps)
end

-- The stamp of these files and texts: the files' identities, not their bytes. Devices do not count: a machine
-- may number them otherwise after a boot.
function stamps.of(paths, ...)
  local parts = { gentables.version, ... }
  for _, path in ipairs(paths) do
    local found = system.identity(path) or {}
    parts[#parts + 1] = ("%s %s %s %s %s"):format(path:match("[^/]*$"), found.inode, found.size,
      found.changed, found.status_changed)
  end
  return system.hash(table.concat(parts, "\0"))
end

-- The files of a product, and the CSVs of its folders, as a text; nil if one of `paths` is missing.
local function inventory(paths)
  local found = {}
  for _, path in ipairs(paths) do
    if not file.exists(path) then return nil end
    found[#found + 1] = path:match("[^/]*$")
    for _, name in ipairs(file.list(path) or {}) do
      if name:find("%.csv$") then found[#found + 1] = name end
    end
  end
  return system.hash(table.concat(found, "\0"))
end

-- `paths` as stamps:kept takes them.
local function paths_of(paths, text)
  return type(paths) == "function" and paths(text) or paths
end

function stamps:path(name) return ("%s/%s"):format(self.folder, name) end

-- The text that was kept with the stamp ("" if none was); nil if the product must be made. `paths`: the
-- required files, or a function of that text that returns them.
function stamps:kept(name, stamp, paths)
  local text = file.read(self:path(name))
  local of, there, at = (text or ""):match("^(%x+) (%x+)\n()")
  if of ~= stamp then return nil end
  local kept = text:sub(at)
  return inventory(paths_of(paths, kept)) == there and kept or nil
end

-- Records a complete product: its stamp, its files (`paths`, as for kept), and a text.
function stamps:keep(name, stamp, text, paths)
  text = text or ""
  local there = inventory(paths_of(paths, text)) or stamp
  fail.unless_done(file.write(self:path(name), ("%s %s\n%s"):format(stamp, there, text)))
end

-- Removes temporary files of a killed run in these folders, and in their folders of CSVs.
function stamps.remove_leftovers(folders)
  for _, folder in ipairs(folders) do
    for _, name in ipairs(file.list(folder) or {}) do
      local path = folder .. "/" .. name
      if name:find("%.%w%w%w%w%w%w%.tmp$") then os.remove(path) end
      if name:find("_csvs$") then stamps.remove_leftovers { path } end
    end
  end
end

function stamps:close() self.lock:close() end

return stamps
