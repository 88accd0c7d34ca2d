-- Calls a function for many traces: for those with a digest in this process, for the others, each opened
-- once, in a child process.
local pack = require "trace.runs.pack"
local fail = require "base.fail"
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

-- Notes of trace_source.open as lines: paths with the same text are one line.
function per_trace.lines(notes)
  local texts, of_text = {}, {}
  for _, note in ipairs(notes) do
    local path, text = table.unpack(note)
    table.insert(sequences.entry(texts, of_text, text, function() return { text = text } end), path)
  end
  return sequences.map(texts, function(paths)
    local more = #paths > 1 and (" (and %d more)"):format(#paths - 1) or ""
    return paths[1] .. more .. paths.text
  end)
end

-- The digests of the entries that have one to read: [entry] = digest; and the results of entries without a
-- usable one. Those that are compared with their traces are left to children, for which modules are loaded
-- here.
local function find_digests(files)
  local digests, results = {}, {}
  for i, entry in ipairs(files) do
    local found = not trace_source.is_compared(entry) and attempt(trace_source.digest_of, entry)
    if found and found.ok then digests[entry] = found.value else results[i] = found or nil end
  end
  note_changed(sequences.map(files, function(entry) return entry.is_digest and digests[entry] or nil end))
  if sequences.count(digests) + sequences.count(results) < #files then trace_source.load() end
  return digests, results
end

-- The result of fn for a digest; nil if it is damaged, and the trace is there to be read.
local function from_digest(fn, digest, entry)
  local result = attempt(fn, trace_source.of(digest), entry)
  return (result.ok or not trace_source.needs_trace(digest, entry)) and result or nil
end

-- Prints the line of map on digests that are older than their traces; for commands that open sources
-- themselves.
function per_trace.note_changed(files) find_digests(files) end

-- Fills `results` for the entries without one, each in a child, and prints the notes on their digests.
local function read_traces(files, results, fn, options)
  local indices = sequences.map(files, function(_, i) return not results[i] and i or nil end)
  local jobs = options.jobs or workers.jobs()
  local threads = math.max(1, workers.jobs() // math.max(1, math.min(jobs, #indices)))
  local all_notes = {}
  local answers = workers.map(indices, function(i)
    local source, notes = trace_source.open(files[i], { workers = threads }, options.needs_trace)
    return pack.pack { value = fn(source, files[i]), notes = notes }
  end, options)
  for k, i in ipairs(indices) do
    local answer = answers[k]
    local result = answer.ok and pack.unpack(answer.value)
    results[i] = result and done(result.value) or failed(answer.value, answer.code)
    sequences.append(all_notes, result and result.notes or {})
    answers[k] = nil
  end
  if options.progress and #all_notes > 0 then options.progress:clear() end
  for _, line in ipairs(per_trace.lines(all_notes)) do fail.note("%s", line) end
end

-- files = the entries of run_folder.find -> for each { ok = true, value = the result of fn(source, file), as
-- trace/runs/pack.lua can pack it } or { ok = false, message, code }; source: trace/runs/trace_source.lua.
-- `options` are those of workers.map, and
--   needs_trace  the reason not to read digests: a digest without its trace is an error with this text
function per_trace.map(files, fn, options)
  local digests, results = {}, {}
  if options.needs_trace then
    run_folder.refuse_digests({ { files = files } }, options.needs_trace)
    trace_source.load()
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
