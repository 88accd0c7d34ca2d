-- A sweep's folder: its settings, and the result of each configuration.
--
--   sweep_YYYYMMDD_HHMMSS/workload.json, workload.lua or .yaml    the settings, and the workload's text
--     {T}thread/nccl_{C}channels/result.json                status ok, failed or interrupted, times, reason
--                               /run_output.log             all messages
--                               /torch_profiler/rank{R}/trace_step{N}.json
--     nccl_thread_sweep_*.log, nccl_thread_sweep_summary_*.txt
--
-- A result is valid for its settings and its machine, while its traces have the size with which they were
-- written. Unreadable results are reported, and measured again.
local configurations = require "trace.runs.configurations"
local fail = require "base.fail"
local file = require "core.file"
local json = require "codec.json"
local result_fields = require "workload.result_fields"
local sequences = require "base.sequences"
local system = require "core.system"

local store = {}
store.__index = store

local SETTINGS, RESULT, LOG, TRACES = "workload.json", "result.json", "run_output.log", "torch_profiler"
-- The output of trace pipeline and report.
local DERIVED = { "tracelens_analysis", "merged_traces", "workload.html" }
local LOCK_PATIENCE = 4 -- seconds until the children of a killed run have ended

-- The settings that must be the same when a sweep is resumed, and their names in messages.
local same = {
  { "backend", "backend" },
  { "ranks", "number of ranks" }, { "workload", "workload" }, { "steps", "number of steps" },
  { "warm_up", "warm-up" }, { "wait", "way to wait" }, { "transport", "transport" },
  { "program", "gentables-workload" },
}

-- The fields of a result's `machine` that identify a machine, on which backend they matter (nil: on all), and
-- their names in messages.
local machine = {
  { "cpu", "processor" }, { "cores", "number of cores", on = "host" },
  { "isa", "instruction set", on = "host" }, { "library", "OpenBLAS", on = "host" },
  { "core", "OpenBLAS core", on = "host" },
  { "device", "GPU", on = "cuda" }, { "engine", "libraries", on = "cuda" },
}

-- The table in this file; nil if it is missing; nil and the reason if it cannot be read.
local function read_json(path)
  if not file.exists(path) then return nil end
  local text, message = file.read(path)
  if not text then return nil, message end
  local value, why = json.decode(text)
  if type(value) == "table" then return value end
  return nil, ("%s: %s"):format(path, why or "not an object")
end

-- The settings of a sweep. Earlier versions called the transport `builtin` `own`.
local function read_settings(path)
  local settings, why = read_json(path)
  if settings and settings.transport == "own" then settings.transport = "builtin" end
  return settings, why
end

-- ---- fields ----------------------------------------------------------------------------------

local is = result_fields.is
local add_lacking = result_fields.add_lacking

-- The fields of a sweep's settings.
local setting_fields = {
  { "backend", is.one_of("host", "cuda") }, { "id", is.text }, { "name", is.text }, { "program", is.text },
  { "ranks", is.positive }, { "steps", is.positive }, { "transport", is.one_of("builtin", "mpi", "nccl") },
  { "wait", is.text }, { "warm_up", is.count }, { "workload", is.text },
}

-- The fields of a failed result, beside `of`.
local failure_fields = { { "status", is.text }, { "reason", is.text }, { "note", is.optional(is.text) },
  { "seconds", is.optional(is.number) }, { "used", is.optional(is.table) } }

-- "PATH: lacks a valid times.left, ..."; nil if no field is missing.
local function lacks(path, names)
  if #names == 0 then return nil end
  local more = #names > 3 and (" and %d more"):format(#names - 3) or ""
  return ("%s: lacks a valid %s%s: it is damaged, or from another version of gentables"):format(path,
    table.concat(names, ", ", 1, math.min(#names, 3)), more)
end

local function result_lacks(result, settings)
  if result.status ~= "ok" then return add_lacking({}, result, failure_fields) end
  return result_fields.lacking(result, settings.ranks, settings.backend)
end

-- ---- files -------------------------------------------------------------------------------------

local function write(path, text)
  fail.unless_done(file.write(path, text))
end

-- Removes a file, or a folder with its content; of a link, only the link. Ignores errors.
local function remove(path)
  if os.remove(path) then return end
  for _, name in ipairs(file.list(path) or {}) do remove(path .. "/" .. name) end
  os.remove(path)
end

-- ---- the sweep ---------------------------------------------------------------------------------

-- A hash of the settings that must be the same; each result has that of its settings as `of`.
local function id_of(settings)
  local parts = sequences.map(same, function(row) return tostring(settings[row[1]]) end)
  return system.hash(table.concat(parts, "\0"))
end

local function settings_of(job)
  local settings = { workload = system.hash(job.text), name = job.workload.name, ranks = job.ranks,
    steps = job.steps, warm_up = job.warm_up, wait = job.wait, transport = job.transport,
    program = job.identity, backend = job.backend }
  settings.id = id_of(settings)
  return settings
end

local function check_same(self, old, new)
  for _, row in ipairs(same) do
    if old[row[1]] ~= new[row[1]] then
      fail.input("%s: was measured with another %s; give another --out, or --fresh", self.folder,
        row[2])
    end
  end
end

-- Calls each(threads, channels) for every configuration that has a folder.
local function each_configuration(self, each)
  for _, thread_name in ipairs(fail.unless(file.list(self.folder))) do
    local threads = math.tointeger(tonumber(thread_name:match("^(%d+)thread$")))
    for _, name in ipairs(threads and file.list(self.folder .. "/" .. thread_name) or {}) do
      local channels = math.tointeger(tonumber(name:match("^nccl_(%d+)channels$")))
      if channels then each(threads, channels) end
    end
  end
end

-- Removes the sweep in this folder, and its reports.
local function clear(self)
  each_configuration(self, function(threads, channels)
    self:forget(threads, channels)
    os.remove(self:path(threads, channels))
    os.remove(self:path(threads, channels):match("^(.*)/"))
  end)
  for _, name in ipairs(DERIVED) do remove(self.folder .. "/" .. name) end
end

-- Traces of other programs, in a tree like ours, are never overwritten.
local function refuse_others(self)
  each_configuration(self, function(threads, channels)
    fail.input("%s: was not written by gentables workload; give another --out",
      self:path(threads, channels))
  end)
end

-- Raises for a configuration without a result of ours: its author is unknown.
local function refuse_unknown(self)
  each_configuration(self, function(threads, channels)
    local path = self:path(threads, channels)
    if not file.exists(path .. "/" .. RESULT) then
      fail.input("%s: has no %s of gentables workload; give another --out", path, RESULT)
    end
  end)
end

-- Initialises the folder for the sweep `new`.
local function settle(self, new, fresh)
  local path = self.folder .. "/" .. SETTINGS
  local old, why = read_settings(path)
  why = why or old and lacks(path, add_lacking({}, old, setting_fields))
  if why and not fresh then fail.input("%s; give another --out, or --fresh", why) end
  if old and not fresh then
    check_same(self, old, new)
  elseif not file.exists(path) then
    refuse_others(self)
  elseif not old or old.id ~= new.id then
    if not (old and old.program and old.workload) then refuse_unknown(self) end
    clear(self)
  end
end

-- The settings of the sweep that was begun in this folder; nil: there is none, or they cannot be read.
function store.begun(folder)
  local settings = read_settings(folder .. "/" .. SETTINGS)
  return settings and #add_lacking({}, settings, setting_fields) == 0 and settings or nil
end

-- Opens the folder for measuring, and locks it against another run. `fresh`: replaces a sweep with other
-- settings.
function store.open(folder, job, fresh)
  local self = setmetatable({ folder = folder }, store)
  local made, message = file.make_folder(folder)
  if not made then fail.input("%s; give another --out", message) end
  self.lock, message = io.open(folder .. "/.lock", "a")
  if not self.lock then fail.input("%s; give another --out", message) end
  if not system.lock(self.lock, LOCK_PATIENCE) then
    fail.work("%s: another sweep is running in this folder", folder)
  end
  self.settings = settings_of(job)
  settle(self, self.settings, fresh)
  write(folder .. "/" .. SETTINGS, json.encode(self.settings) .. "\n")
  write(folder .. "/workload." .. job.workload.format, job.workload.text)
  return self
end

function store:close()
  self.lock:close()
  os.remove(self.folder .. "/.lock")
end

-- ---- configurations ----------------------------------------------------------------------------

function store:path(threads, channels)
  return ("%s/%dthread/nccl_%dchannels"):format(self.folder, threads, channels)
end

-- The path of rank %r's trace; with `rank`, of that rank.
function store:trace(threads, channels, rank)
  return ("%s/torch_profiler/rank%s/trace_step%d.json"):format(self:path(threads, channels), rank or "%r",
    self.settings.steps - 1)
end

-- The result of a configuration under these settings: { status, seconds, reason and used | times... }, or
-- nil; and the reason, if it cannot be read.
function store:result(threads, channels)
  local path = self:path(threads, channels) .. "/" .. RESULT
  local result, why = read_json(path)
  if not result then return nil, why end
  if is.text(result.of) and result.of ~= self.settings.id then return nil end
  why = lacks(path, is.text(result.of) and result_lacks(result, self.settings) or { "of" })
  if why then return nil, why end
  return result
end

-- The bytes of each rank's trace; nil if one is missing.
local function trace_bytes(self, threads, channels)
  local out = {}
  for rank = 0, self.settings.ranks - 1 do
    local kind, bytes = file.status(self:trace(threads, channels, rank))
    if kind ~= "file" then return nil end
    out[rank + 1] = bytes
  end
  return out
end

-- The result of a configuration that is measured and complete; or nil, and the problem of an existing one.
function store:finished(threads, channels)
  local result, why = self:result(threads, channels)
  if not result or result.status ~= "ok" then return nil, why end
  local bytes = trace_bytes(self, threads, channels)
  if not bytes then return nil end
  for rank, count in ipairs(result.trace_bytes or {}) do
    if bytes[rank] ~= count then
      return nil, ("%s: has %d bytes, but was written with %d"):format(
        self:trace(threads, channels, rank - 1), bytes[rank], count)
    end
  end
  return result
end

-- Removes the result of an earlier run of a configuration.
function store:forget(threads, channels)
  for _, name in ipairs { RESULT, LOG, TRACES } do remove(self:path(threads, channels) .. "/" .. name) end
end

-- Empties a configuration's folder, so that a failure has no stale files beside it.
function store:prepare(threads, channels)
  self:forget(threads, channels)
  for rank = 0, self.settings.ranks - 1 do
    fail.unless_done(file.make_folder((self:trace(threads, channels, rank):gsub("/[^/]*$", ""))))
  end
end

function store:keep_log(threads, channels, log)
  write(self:path(threads, channels) .. "/" .. LOG, table.concat(log, "\n") .. "\n")
end

-- Writes a result, { status, ... }, and the log.
function store:keep(threads, channels, result, log)
  result.of = self.settings.id
  if result.status == "ok" then result.trace_bytes = trace_bytes(self, threads, channels) end
  self:keep_log(threads, channels, log)
  write(self:path(threads, channels) .. "/" .. RESULT, json.encode(result) .. "\n")
end

-- ---- machines ----------------------------------------------------------------------------------

-- The differences between the machines of two results: { { what, a's, b's }... }. A fact that one does not
-- have yet is not a difference.
function store.machines_differ(a, b)
  return sequences.map(machine, function(row)
    local x, y = (a.machine or {})[row[1]], (b.machine or {})[row[1]]
    local is_known = x and y and (not row.on or row.on == (a.backend or b.backend))
    return is_known and x ~= y and { row[2], x, y } or nil
  end)
end

-- The reason why a result that begins with the fields in `result` cannot be in this sweep; nil: it can.
function store:refusal(result)
  local reason
  each_configuration(self, function(threads, channels)
    local there = not reason and self:result(threads, channels)
    local differs = there and there.status == "ok" and store.machines_differ(there, result)[1]
    if differs then
      reason = ("%s: was measured with another %s: %s instead of %s; give another --out, or --fresh with"
        .. " all of its configurations"):format(self.folder, table.unpack(differs))
    end
  end)
  return reason
end

-- ---- reading -----------------------------------------------------------------------------------

-- { folder, settings, entries = { { threads, channels, status, seconds, used (where accepted), note (where
-- there is one), result (status ok), reason (otherwise) }... } in order }.
function store.read(folder)
  local self = setmetatable({ folder = (folder:gsub("(.)/+$", "%1")) }, store)
  local why
  self.settings, why = read_settings(self.folder .. "/" .. SETTINGS)
  if not self.settings then
    fail.input("%s; give a folder that gentables workload sweep wrote",
      why or ("%s: has no %s"):format(folder, SETTINGS))
  end
  why = lacks(self.folder .. "/" .. SETTINGS, add_lacking({}, self.settings, setting_fields))
  if why then fail.input("%s; run its sweep again with --fresh", why) end
  self.entries = {}
  each_configuration(self, function(threads, channels)
    local result, problem = self:result(threads, channels)
    if problem then problem = problem .. "; run its sweep again with --fresh" end
    if result or problem then
      table.insert(self.entries, { threads = threads, channels = channels,
        reason = result and result.reason or problem, seconds = result and result.seconds,
        status = result and result.status or "failed", used = result and result.used,
        note = result and result.note,
        result = result and result.status == "ok" and result or nil })
    end
  end)
  table.sort(self.entries, configurations.before)
  return self
end

-- The measured configurations.
function store:measured()
  return sequences.filter(self.entries, function(entry) return entry.result end)
end

return store
