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
local rank = require "trace.ops.rank"
local trace_digest = require "trace.runs.trace_digest"

local trace_source = {}
trace_source.__index = trace_source

-- The facts of a trace: see info in trace/analysis/trace_lua.cpp.
trace_source.info_part = { field = "info", collect = function(one) return one.trace:info() end }

-- The digest that is read in place of a trace; nil: the trace is read. entry: of run_folder.find. Raises if
-- only the digest was given, and it cannot be used.
function trace_source.digest_of(entry)
  if not entry.digest then return nil end
  local digest, message = trace_digest.open(entry.digest)
  if entry.is_digest then return fail.unless(digest, message) end
  return digest and digest:is_of(entry.path) and digest or nil
end

-- The source of a rank, or of a digest.
function trace_source.of(one)
  return setmetatable(one.trace and { rank = one } or { digest = one }, trace_source)
end

-- Why the trace is read, after a part of its digest was; nil: it is not needed, or not given.
function trace_source.why_trace(digest, entry)
  return digest.damage and not entry.is_digest and digest.damage .. "; the trace is read" or nil
end

-- Opens the source of a trace; raises if it cannot be read. options: those of rank.open. With `needs_trace`
-- it is not a digest. Also returns the note on a damaged digest in place of which the trace is read, or nil.
function trace_source.open(entry, options, needs_trace)
  local digest, note = not needs_trace and trace_source.digest_of(entry), nil
  if digest and not entry.is_digest and not digest:is_whole() then
    note = trace_source.why_trace(digest, entry)
    digest = nil
  end
  return trace_source.of(digest or fail.unless(rank.open(entry.path, options))), note
end

function trace_source:get(part)
  if self.digest then return self.digest:get(part) end
  return part.collect(self.rank)
end

function trace_source:info() return self:get(trace_source.info_part) end

return trace_source
