-- Calls a function for many traces: for those with a digest in this process, for the others, each opened
-- once, in a child process.
local pack = require "trace.runs.pack"
local fail = require "base.fail"
local rank = require "trace.ops.rank"
local run_folder = require "trace.runs.run_folder"
local sequences = require "base.sequences"
local trace_digest = require "trace.runs.trace_digest"
local trace_source = require "trace.runs.trace_source"
local workers = require "system.workers"

local per_trace = {}

local function done(value) return { ok = true, value = value } end

local function failed(message, code) return { ok = false, message = message, code = code } end

-- The result of fn(...), also if it raises a failure.
local function attempt(fn, ...)
  local ok, value = pcall(fn, ...)
  if ok then return done(value) end
  local known = fail.of(value)
  return fail.is_failure(known) and failed(known.message, known.code) or error(value, 0)
end

-- One line on digests that were given without their traces, and which are older than these.
local function note_changed(digests)
  local changed = sequences.filter(digests, function(digest)
    local source = digest.header.source
    return trace_digest.identity(source) and not digest:is_of(source)
  end)
  if #changed > 0 then
    fail.note("%s: %s has changed since%s; gentables trace digest makes it again", changed[1].path,
      changed[1].header.source, #changed > 1 and (" (and %d more)"):format(#changed - 1) or "")
  end
end

-- The digests of the entries that have one to read: [entry] = digest; and the results of entries without a
-- usable one.
local function find_digests(files)
  local digests, results = {}, {}
  for i, entry in ipairs(files) do
    local found = attempt(trace_source.digest_of, entry)
    if found.ok then digests[entry] = found.value else results[i] = found end
  end
  note_changed(sequences.map(files, function(entry) return entry.is_digest and digests[entry] or nil end))
  return digests, results
end

-- The result of fn for a digest; nil, after a note, if it is damaged, and the trace is there to be read.
local function from_digest(fn, digest, entry)
  local result = attempt(fn, trace_source.of(digest), entry)
  local note = not result.ok and trace_source.why_trace(digest, entry)
  if not note then return result end
  fail.note(note)
end

-- Prints the line of map on digests that are older than their traces; for commands that open sources
-- themselves.
function per_trace.note_changed(files) find_digests(files) end

-- Fills `results` for the entries without one, each in a child.
local function read_traces(files, results, fn, options)
  local indices = sequences.map(files, function(_, i) return not results[i] and i or nil end)
  local jobs = options.jobs or workers.jobs()
  local threads = math.max(1, workers.jobs() // math.max(1, math.min(jobs, #indices)))
  local answers = workers.map(indices, function(i)
    local one = fail.unless(rank.open(files[i].path, { workers = threads }))
    return pack.pack(fn(trace_source.of(one), files[i]))
  end, options)
  for k, i in ipairs(indices) do
    local answer = answers[k]
    results[i] = answer.ok and done(pack.unpack(answer.value)) or failed(answer.value, answer.code)
    answers[k] = nil
  end
end

-- files = the entries of run_folder.find -> for each { ok = true, value = the result of fn(source, file), as
-- trace/runs/pack.lua can pack it } or { ok = false, message, code }; source: trace/runs/trace_source.lua.
-- `options` are those of workers.map, and
--   needs_trace  the reason not to read digests: a digest without its trace is an error with this text
function per_trace.map(files, fn, options)
  local digests, results = {}, {}
  if options.needs_trace then
    run_folder.refuse_digests({ { files = files } }, options.needs_trace)
  else
    digests, results = find_digests(files)
  end
  for i, entry in ipairs(files) do
    if digests[entry] then results[i] = from_digest(fn, digests[entry], entry) end
    if results[i] and options.progress then options.progress:step() end
  end
  read_traces(files, results, fn, options)
  return results
end

return per_trace
