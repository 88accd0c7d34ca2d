-- What a user meets besides kills: files of others in the way, folders that cannot be written, a full disk.
--
-- A hindrance is { name, put(today, folders) -> what it put or nil, take(today, what) }. `folders` are those
-- that the verb uses. `what` may have `path`, `names`, a set of names in TMPDIR that are not gentables', and
-- `limit`, of day:run. `take` removes it, and only it: a file that gentables wrote in its place stays.
local file = require "core.file"
local system = require "core.system"

local is_root = system.is_root()

local function shell(command, ...)
  command = command:format(...)
  return os.execute(command)
end

local function output_of(command, ...)
  local handle <close> = assert(io.popen(command:format(...)))
  return (handle:read("l"))
end

local function inode(path) return output_of("stat -c %%i:%%u '%s' 2>/dev/null", path) end

local function pick(list) return list[math.random(#list)] end

-- Files that gentables reads or writes in a day, by folder.
local files = {
  rows = { "benchmark.tp2.host.csv", "benchmark.tp2.host.json", "benchmark.tp2.host.csv.part", ".lock",
    "spec.lua" },
  tables = { "table.csv", "report.md", "allreduce_table.h", ".lock" },
  tuned = { "tuned.json", "gentables_tuned.py", "gentables_torch.py", ".lock" },
  cache = { "tune.json", "tune.json.lock" },
}

-- A path of one of these files, in one of these folders.
local function pick_path(today, folders)
  local folder
  repeat folder = pick(folders) until files[folder]
  return today:path(folder .. "/" .. pick(files[folder]))
end

-- Makes a path another user's. If this is not root, takes the rights of its owner, who keeps it.
local function give_away(today, path, mode)
  if is_root then shell("chown -h %s '%s'", today.user and "0:0" or "65534:65534", path) end
  shell("chmod %s '%s'", is_root and mode or mode:gsub("^6", "0"):gsub("^7", "0"), path)
end

local function give_back(today, path, mode)
  if is_root then shell("chown %s '%s'", today.user or "0", path) end
  shell("chmod %s '%s'", mode, path)
end

-- Puts something that `make` (a shell command) makes at a free path.
local function in_the_way(make, mode)
  return function(today, folders)
    local path = pick_path(today, folders)
    if file.status(path) then return nil end
    assert(shell(make, path))
    if mode then give_away(today, path, mode) end
    return { path = path, inode = inode(path) }
  end
end

local function remove(_, what)
  if inode(what.path) == what.inode then shell("rm -rf '%s'", what.path) end
end

return {
  { name = "a file of another user in the way", put = in_the_way("printf 'rubbish\\n' >'%s'", "600"),
    take = remove },
  { name = "a readable file of another user in the way",
    put = in_the_way("printf 'rubbish\\n' >'%s'", "644"), take = remove },
  { name = "a folder in the way", put = in_the_way("mkdir '%s'", "755"), take = remove },
  { name = "a link to nothing in the way", put = in_the_way("ln -s nowhere/nothing '%s'"), take = remove },
  {
    name = "a file becomes another user's",
    put = function(today, folders)
      local path = pick_path(today, folders)
      if file.status(path) ~= "file" then return nil end
      give_away(today, path, "600")
      return { path = path, inode = inode(path) }
    end,
    take = function(today, what)
      if inode(what.path) == what.inode then give_back(today, what.path, "644") end
    end,
  },
  {
    name = "a folder becomes another user's",
    put = function(today, folders)
      local path = today:path(pick(folders))
      give_away(today, path, "555")
      return { path = path }
    end,
    take = function(today, what) give_back(today, what.path, "755") end,
  },
  {
    name = "Open MPI's session folder is another user's",
    put = function(today)
      local host = output_of("uname -n"):match("^[^.]+")
      local name = ("ompi.%s.%s"):format(host, today.user or output_of("id -u"))
      local path = today:path("tmp/" .. name)
      if not shell("mkdir '%s'", path) then return nil end
      give_away(today, path, "700")
      return { names = { [name] = true }, path = path }
    end,
    take = function(_, what) shell("rm -rf '%s'", what.path) end,
  },
  {
    name = "a full disk",
    put = function(today)
      if not today.has_disk then return nil end
      local free = tonumber(output_of("df --output=avail -B1 '%s' | tail -n 1", today.folder))
      local path, rest = today:path("ballast"), math.random(0, 64) * 1024
      shell("fallocate -l %d '%s'", math.max(1, free - rest), path)
      return { path = path }
    end,
    take = function(_, what) os.remove(what.path) end,
  },
  {
    name = "a limit of file sizes",
    put = function() return { limit = math.random(0, 24) * 1024 } end,
    take = function() end,
  },
}
