-- A folder of digests for commands over ranks (--digests): they read its digests in place of unchanged
-- traces, and add the digests of the traces that they read. Each run, kernel of the user and selection has
-- digests of its own, so that one folder is enough for all.
local digest_parts = require "trace.digests.digest_parts"
local digest_making = require "trace.digests.digest_making"
local fail = require "base.fail"
local file = require "core.file"
local opening = require "trace.analysis.opening"
local sequences = require "base.sequences"
local system = require "core.system"
local trace_digest = require "trace.runs.trace_digest"
local trace_source = require "trace.runs.trace_source"

local digest_folder = {}
digest_folder.__index = digest_folder

digest_folder.options = {
  { name = "digests", value = "DIR",
    help = "folder of digests: read in place of unchanged traces, and made of the others" },
  { name = "verify", help = "compare the contents of traces that have a digest, not only size and times" },
}

-- ---- the functions of trace/runs/trace_source.lua -----------------------------------------------------

-- Raises if there cannot be such a folder.
function digest_folder:make()
  local made, message = file.make_folder(self.path)
  if not made then fail.input("%s; give another --digests", message) end
end

-- Loads the modules for open.
function digest_folder.load() digest_parts.list() end

-- The path of the digest that this folder keeps. Its end is not that of a digest, so that the folder has no
-- digests for a command that gets it as its traces.
local function own_path(self, entry)
  local path = fail.unless(file.real_path(entry.path))
  local key = table.concat({ path, trace_digest.kernels(), opening.selected() }, "\0")
  return ("%s/%s%s.%s"):format(self.path, path:match("[^/]*$"), trace_digest.ENDING, system.hash(key))
end

-- Its own path, and that of trace digest --out, for a folder that this has made.
function digest_folder:paths(entry)
  return { own_path(self, entry), digest_making.path(entry, self.path) }
end

function digest_folder:open(entry, options)
  return digest_making.open(entry.path, own_path(self, entry), options)
end

-- ---- commands ----------------------------------------------------------------------------------------

-- Reads and adds digests by these options from now on.
function digest_folder.use(args)
  local path = args.digests and (args.digests:gsub("(.)/+$", "%1"))
  trace_source.use(path and setmetatable({ path = path }, digest_folder), args.verify)
end

-- A command over ranks (of verbs/trace/) with these options.
function digest_folder.command(command)
  local run = command.run
  return sequences.merged(command, { options = sequences.join { command.options, digest_folder.options },
    run = function(args)
      digest_folder.use(args)
      return run(args)
    end })
end

return digest_folder
