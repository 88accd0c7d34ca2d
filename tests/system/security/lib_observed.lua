-- Runs a verb of gentables under watcher.c, and records which modules start processes and make temporary
-- folders.
--
--   gentables lua lib_observed.lua RECORD LOG VERB ARGUMENT...
--
-- Each start appends a line to RECORD: the modules that called, such as "system.scratch pages.gnuplot". A
-- module that makes a folder waits until the watcher's LOG has the folder's name: until it has tried to get
-- hold of it.
local file = require "core.file"
local process = require "core.process"
local verbs = require "verbs"
local workers = require "core.workers"

local record, log = arg[1], arg[2]
local PATIENCE = 60 -- seconds until a watcher that does not see a folder is a failure
local GENERATOR = "@" .. gentables.home .. "/generator/"

-- The modules of gentables that called the caller of this function.
local function callers()
  local names, level = {}, 3
  local info = debug.getinfo(level, "S")
  while info do
    if info.source:sub(1, #GENERATOR) == GENERATOR then
      names[#names + 1] = info.source:sub(#GENERATOR + 1):gsub("%.lua$", ""):gsub("/", ".")
    end
    level = level + 1
    info = debug.getinfo(level, "S")
  end
  return table.concat(names, " ")
end

local function append(line)
  local stream <close> = assert(io.open(record, "a"))
  assert(stream:write(line, "\n"))
end

local function wait_for_watcher(path)
  local line, ends_at = "\nseen " .. path:match("[^/]*$") .. "\n", process.now() + PATIENCE
  repeat
    assert(process.now() < ends_at, "the watcher does not see " .. path)
  until assert(file.read(log)):find(line, 1, true)
end

-- Makes a function of a module record its callers. `after`, or nil, gets its first result if that is not nil.
local function observe(module, name, after)
  local real = module[name]
  module[name] = function(...)
    append(callers())
    local results = table.pack(real(...))
    if after and results[1] then after(results[1]) end
    return table.unpack(results, 1, results.n)
  end
end

observe(process, "start")
observe(workers, "map")
observe(file, "temporary_folder", wait_for_watcher)
return verbs.main(table.unpack(arg, 3))
