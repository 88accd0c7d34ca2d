-- The parts of one trace, from its digest or from the open trace. Results are made of parts, so that both
-- give the same ones. A part:
--
--   { field = "info", collect = function(rank) -> value }
--
-- `collect` makes it from an open trace (trace/ops/rank.lua), of values as trace/runs/pack.lua can pack them.
--
--   source:get(part) -> its value
--   source:info()    -> that of trace_source.info_part
--   source.rank      the open trace; nil: the source is a digest
local fail = require "base.fail"
local opening = require "trace.analysis.opening"
local rank = require "trace.ops.rank"
local sequences = require "base.sequences"
local trace_digest = require "trace.runs.trace_digest"

local trace_source = {}
trace_source.__index = trace_source

-- The facts of a trace: see info in trace/analysis/trace_lua.cpp.
trace_source.info_part = { field = "info", collect = function(one) return one.trace:info() end }

-- The folder to which digests are added (trace/digests/digest_folder.lua), nil: none; and whether the
-- contents of traces are compared with those of their digests.
local folder, verifies

-- Of all traces that this process and its children read from now on. The folder has the functions
--   make()                -- makes it
--   load()                -- loads the modules that open needs
--   paths(entry)          -- the possible paths of an entry's digest
--   open(entry, options)  -- opens the trace, and adds its digest: see digest_making.open
function trace_source.use(new_folder, verify) folder, verifies = new_folder, verify end

function trace_source.has_folder() return folder ~= nil end

-- Makes the folder, if there is one; before the first trace is read.
function trace_source.prepare()
  if folder then folder:make() end
end

-- Loads what reading traces needs: in this process once, and not in each child.
function trace_source.load()
  require "core.trace"
  opening.load()
  if folder then folder:load() end
end

-- Whether the trace is read, to be compared with its digest.
function trace_source.is_compared(entry) return verifies and not entry.is_digest end

-- The digest that is read in place of a trace; nil: the trace is read. entry: of run_folder.find. Raises if
-- only the digest was given, and it cannot be used.
function trace_source.digest_of(entry)
  if entry.is_digest then return fail.unless(trace_digest.open(entry.digest)) end
  local paths = sequences.join { folder and folder:paths(entry) or {}, { entry.digest } }
  return sequences.first(paths, function(path)
    local digest = trace_digest.open(path)
    local is_current = digest and digest:is_of(entry.path)
    return is_current and (not verifies or digest:is_verified(entry.path)) and digest or nil
  end)
end

-- The source of a rank, or of a digest. values: { [field] = value } of parts that the rank has already.
function trace_source.of(one, values)
  return setmetatable(one.trace and { rank = one, values = values or {} } or { digest = one }, trace_source)
end

-- Whether the trace is read after a part of its digest was: the digest is damaged, and the trace is given.
function trace_source.needs_trace(digest, entry) return digest.damage and not entry.is_digest end

-- Notes are { path, the text after it }.
local function note_of_damage(digest)
  local advice = folder and "" or "; make it again with gentables trace digest --verify"
  return { digest.path, digest.damage .. advice .. "; the trace is read" }
end

-- The source of the trace itself, and the note on its digest, or nil.
local function read(entry, options, has_digest)
  if not folder or has_digest then return trace_source.of(fail.unless(rank.open(entry.path, options))) end
  local one, values, reason = folder:open(entry, options)
  local note = reason and { entry.path, ": its digest is not kept: " .. reason }
  return trace_source.of(one, values), note
end

-- Opens the source of a trace; raises if it cannot be read. options: those of rank.open. With `needs_trace`
-- it is not a digest. Also returns a list of notes.
function trace_source.open(entry, options, needs_trace)
  local digest, damage = (folder or not needs_trace) and trace_source.digest_of(entry), nil
  if digest and not needs_trace then
    if entry.is_digest or verifies or digest:is_whole() then return trace_source.of(digest), {} end
    digest, damage = nil, note_of_damage(digest)
  end
  local source, note = read(entry, options, digest)
  return source, sequences.join { { damage }, { note } }
end

function trace_source:get(part)
  if self.digest then return self.digest:get(part) end
  local value = self.values[part.field]
  if value == nil then return part.collect(self.rank) end
  return value
end

function trace_source:info() return self:get(trace_source.info_part) end

return trace_source
