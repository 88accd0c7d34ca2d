-- A sweep's folder: what it was asked for, and what is known of each configuration.
--
--   sweep_YYYYMMDD_HHMMSS/workload.json, workload.lua       the settings, and the workload's text
--     {T}thread/nccl_{C}channels/result.json                status ok or failed, times, reason, duration
--                               /run_output.log             what was said
--                               /torch_profiler/rank{R}/trace_step{N}.json
--     nccl_thread_sweep_*.log, nccl_thread_sweep_summary_*.txt
local configurations = require "trace.configurations"
local fail = require "fail"
local file = require "core.file"
local json = require "json"
local system = require "core.system"

local store = {}
store.__index = store

local SETTINGS, RESULT = "workload.json", "result.json"
local LOCK_PATIENCE = 4 -- seconds in which the children of a run that was killed have ended

-- What has to be the same when a sweep is gone on with, and how that is called.
local same = {
  { "backend", "backend" },
  { "ranks", "number of ranks" }, { "workload", "workload" }, { "steps", "number of steps" },
  { "warm_up", "warm-up" }, { "wait", "way to wait" }, { "transport", "transport" },
  { "program", "gentables-workload" },
}

local function read_json(path)
  if not file.exists(path) then return nil end
  local text = fail.unless(file.read(path))
  local value, message = json.decode(text)
  if type(value) ~= "table" then
    fail.input("%s: %s; without it the sweep is measured anew", path, message or "no object")
  end
  return value
end

local function write(path, text)
  local written, message = file.write(path, text)
  if not written then fail.work("%s", message) end
end

-- ---- the sweep ---------------------------------------------------------------------------------

local function settings_of(job)
  return { workload = system.hash(job.text), name = job.workload.name, ranks = job.ranks, steps = job.steps,
    warm_up = job.warm_up, wait = job.wait, transport = job.transport, program = job.identity,
    backend = job.backend }
end

local function check_same(self, old, new)
  for _, row in ipairs(same) do
    if old[row[1]] ~= new[row[1]] then
      fail.input("%s: was measured with another %s; another --out, or --fresh, would be right", self.folder,
        row[2])
    end
  end
end

-- Opens the folder to measure in it, and locks it against another run. `fresh`: whatever is there.
function store.open(folder, job, fresh)
  local self = setmetatable({ folder = folder }, store)
  local made, message = file.make_folder(folder)
  if not made then fail.input("%s; another --out would be right", message) end
  self.lock, message = io.open(folder .. "/.lock", "a")
  if not self.lock then fail.input("%s; another --out would be right", message) end
  if not system.lock(self.lock, LOCK_PATIENCE) then fail.work("%s: another sweep is at work here", folder) end
  local old, new = read_json(folder .. "/" .. SETTINGS), settings_of(job)
  if old and not fresh then check_same(self, old, new) end
  self.settings, self.fresh = new, fresh
  write(folder .. "/" .. SETTINGS, json.encode(new) .. "\n")
  write(folder .. "/workload.lua", job.workload.text)
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

-- Where rank %r's trace goes; with `rank`, that rank's.
function store:trace(threads, channels, rank)
  return ("%s/torch_profiler/rank%s/trace_step%d.json"):format(self:path(threads, channels), rank or "%r",
    self.settings.steps - 1)
end

-- What is known of a configuration: { status, seconds, reason | times... }, or nil.
function store:result(threads, channels)
  return read_json(self:path(threads, channels) .. "/" .. RESULT)
end

-- The result of a configuration that is measured and whole.
function store:finished(threads, channels)
  if self.fresh then return nil end
  local result = self:result(threads, channels)
  if not result or result.status ~= "ok" then return nil end
  for rank = 0, self.settings.ranks - 1 do
    if not file.exists(self:trace(threads, channels, rank)) then return nil end
  end
  return result
end

-- Empties a configuration's place, so that nothing stale stays beside a failure.
function store:prepare(threads, channels)
  os.remove(self:path(threads, channels) .. "/" .. RESULT)
  for rank = 0, self.settings.ranks - 1 do
    local path = self:trace(threads, channels, rank)
    local made, message = file.make_folder((path:gsub("/[^/]*$", "")))
    if not made then fail.work("%s", message) end
    os.remove(path)
  end
end

function store:keep(threads, channels, result, log)
  local path = self:path(threads, channels)
  write(path .. "/run_output.log", table.concat(log, "\n") .. "\n")
  write(path .. "/" .. RESULT, json.encode(result) .. "\n")
end

-- ---- reading -----------------------------------------------------------------------------------

-- { folder, settings, entries = { { threads, channels, result (status ok), reason }... } in order }.
function store.read(folder)
  local self = setmetatable({ folder = (folder:gsub("(.)/+$", "%1")) }, store)
  self.settings = read_json(self.folder .. "/" .. SETTINGS)
  if not self.settings then
    fail.input("%s: no %s in it; a folder that gentables workload sweep wrote would be right", folder,
      SETTINGS)
  end
  self.entries = {}
  for _, thread_name in ipairs(fail.unless(file.list(self.folder))) do
    local threads = math.tointeger(tonumber(thread_name:match("^(%d+)thread$")))
    for _, name in ipairs(threads and file.list(self.folder .. "/" .. thread_name) or {}) do
      local channels = math.tointeger(tonumber(name:match("^nccl_(%d+)channels$")))
      local result = channels and self:result(threads, channels)
      if result then
        table.insert(self.entries, { threads = threads, channels = channels, reason = result.reason,
          result = result.status == "ok" and result or nil })
      end
    end
  end
  table.sort(self.entries, configurations.before)
  return self
end

-- Those that were measured.
function store:measured()
  local out = {}
  for _, entry in ipairs(self.entries) do
    if entry.result then out[#out + 1] = entry end
  end
  return out
end

return store
