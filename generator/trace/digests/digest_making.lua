-- Makes the digests of traces (trace/runs/trace_digest.lua), those that are missing or older than their
-- traces. Each is written whole or not at all, so that a run that was killed, or that works beside others on
-- the same folder, leaves complete digests only.
local digest_parts = require "trace.digests.digest_parts"
local fail = require "base.fail"
local file = require "core.file"
local rank = require "trace.ops.rank"
local run_folder = require "trace.runs.run_folder"
local sequences = require "base.sequences"
local system = require "core.system"
local trace_digest = require "trace.runs.trace_digest"
local workers = require "system.workers"

local digest_making = {}

local MADE, KEPT = "made", "kept"

-- ---- places -------------------------------------------------------------------------------------------

-- The path of a trace's digest: beside the trace, or in `folder`.
function digest_making.path(entry, folder)
  if not folder then return entry.path .. trace_digest.ENDING end
  return ("%s/%s%s"):format(folder, run_folder.place(entry.path), trace_digest.ENDING)
end

-- Sets entry.digest_path of all entries. Raises if two have the same one.
local function set_paths(entries, folder)
  local entry_of = {}
  for _, entry in ipairs(entries) do
    entry.digest_path = digest_making.path(entry, folder)
    local other = entry_of[entry.digest_path]
    if other then
      fail.input("%s and %s have the same digest, %s; give one run at a time, with a --out for each",
        other.path, entry.path, entry.digest_path)
    end
    entry_of[entry.digest_path] = entry
  end
end

-- Raises if a digest is that of another trace, which still exists.
local function check_source(digest, entry)
  local source = digest.header.source
  if source == file.real_path(entry.path) then return end
  local other, mine = trace_digest.identity(source), trace_digest.identity(entry.path)
  if other and mine and not trace_digest.same(other, mine) then
    fail.input("%s: is the digest of %s; give another --out for %s", digest.path, source, entry.path)
  end
end

-- ---- one digest ---------------------------------------------------------------------------------------

-- Whether an entry has its digest. With `verify` all bytes of the trace and of the digest are checked, too.
local function has_digest(entry, verify)
  local digest = trace_digest.open(entry.digest_path)
  if not digest then return false end
  check_source(digest, entry)
  if not digest:is_of(entry.path) then return false end
  return not verify or digest:is_verified(entry.path)
end

-- Writes the digest of the open trace `one` at `path`. parts: of digest_parts.list; identity: of the trace,
-- before it was opened. Returns the values of the parts. Raises if that fails.
local function write(one, path, parts, identity)
  local values, contents = digest_parts.of(one, parts), fail.unless(system.hash_file(one.path))
  local after = trace_digest.identity(one.path)
  if not identity or not after or not trace_digest.same(identity, after) then
    fail.input("%s: has changed while it was read; make its digest when it is complete", one.path)
  end
  fail.unless_done(file.make_folder(path:match("^(.*)/") or "."))
  trace_digest.write(path, fail.unless(file.real_path(one.path)), identity, contents, values)
  return values
end

-- Opens a trace with these options of rank.open, and writes its digest at `digest`. Returns the open trace,
-- { [field] = value of the part }, or nil if there is no digest, and the reason. Raises if the trace cannot
-- be opened.
function digest_making.open(path, digest, options)
  local identity = trace_digest.identity(path)
  local one = fail.unless(rank.open(path, options))
  local ok, values = pcall(write, one, digest, digest_parts.list(), identity)
  if ok then return one, values end
  local known = fail.of(values)
  if not fail.is_failure(known) then error(values, 0) end
  for _, name in ipairs { path .. ": ", digest .. ": " } do
    if known.message:sub(1, #name) == name then return one, nil, known.message:sub(#name + 1) end
  end
  return one, nil, known.message
end

local function make(entry, parts, threads)
  local identity = trace_digest.identity(entry.path)
  write(fail.unless(rank.open(entry.path, { workers = threads })), entry.digest_path, parts, identity)
end

-- ---- all of them --------------------------------------------------------------------------------------

-- The entries of one of `part.count` processes, the part.index-th from 0; the largest traces first, so that
-- each process has its share of them.
local function own_share(entries, part)
  local size = {}
  for _, entry in ipairs(entries) do size[entry] = select(2, file.status(entry.path)) or 0 end
  local order = table.move(entries, 1, #entries, 1, {})
  table.sort(order, function(a, b)
    if size[a] ~= size[b] then return size[a] > size[b] end
    return a.path < b.path
  end)
  return part and sequences.map(order, function(entry, i)
    return (i - 1) % part.count == part.index and entry or nil
  end) or order
end

-- Makes the digests of entries (of run_folder.find). options: out (a folder; nil: beside the traces), part =
-- { index, count } | nil, verify, fresh (make all), jobs, progress, failed(message, code), called for each
-- trace without a digest. Returns the numbers of those that were made, and that were there.
function digest_making.make(entries, options)
  set_paths(entries, options.out)
  local missing, kept, made = {}, 0, 0
  for _, entry in ipairs(own_share(entries, options.part)) do
    local ok, has = pcall(has_digest, entry)
    if not ok then fail.pass_on(has) end
    if has and not (options.verify or options.fresh) then
      kept = kept + 1
    else
      missing[#missing + 1] = entry
    end
  end
  local jobs = options.jobs or workers.jobs()
  local threads = math.max(1, workers.jobs() // math.max(1, math.min(jobs, #missing)))
  -- Modules are loaded here once, and not in each child.
  local parts = digest_parts.list()
  require "core.trace"
  options.progress.total = #missing
  workers.map(missing, function(entry)
    -- Another process may have made it meanwhile.
    if not options.fresh and has_digest(entry, options.verify) then return KEPT end
    make(entry, parts, threads)
    return MADE
  end, { jobs = jobs, progress = options.progress, title = "digests", each = function(_, result)
    if not result.ok then return options.failed(result.value, result.code) end
    if result.value == MADE then made = made + 1 else kept = kept + 1 end
  end })
  return made, kept
end

return digest_making
