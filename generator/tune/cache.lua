-- The results of earlier runs of `gentables tune`: one JSON file, read and written by this process alone,
-- whole or not at all. Ranks never read it; they measure the requests of the pass, so that a hit on one rank
-- and a miss on another cannot happen.
--
-- The key of a result: machine, bench and launcher; samples, warm-up, launches and synchronisation; whether
-- NCCL is limited to loopback; the variables that libraries read (environment.lua); op, data type, bytes,
-- splits, ranks, epilogue and candidate; for a plug-in's candidate the libraries of plug-ins, for AUTO the
-- table that it looks up, for symmetric kernels of NCCL whether its log goes elsewhere. The memory limit of
-- data is not in it: it divides a pass into batches, and does not change times.
local backends = require "conversation.backends"
local columns = require "lists.columns"
local environment = require "tune.environment"
local fail = require "base.fail"
local file = require "core.file"
local json = require "codec.json"
local lists = require "lists.lists"
local provenance = require "rows.provenance"
local rows = require "core.rows"
local sequences = require "base.sequences"
local system = require "core.system"

local cache = {}
cache.__index = cache

local VERSION = 1
local LOCK_PATIENCE = 10 -- seconds; the lock is held while one file is written

local function default_path()
  local folder = os.getenv("XDG_CACHE_HOME")
  if not folder or folder == "" then folder = (os.getenv("HOME") or ".") .. "/.cache" end
  return folder .. "/gentables/tune.json"
end

local TIMES = { "time_us", "low_us", "high_us", "samples" } -- of a result without a reason

local is_number = { pass = true }
for _, column in ipairs(columns) do
  if column.bench and not column.names then is_number[column.key] = true end
end

-- The texts of a result, and whether a value is one.
local function is_text(value) return type(value) == "string" end
local texts = { strategy = is_text, epilogue = is_text, reason = is_text,
  accumulate = function(value) return lists.has("accumulates", value) end,
  placement = function(value) return lists.has("placements", value) end,
  place = function(value) return value == "in" or value == "out" end }

-- Whether the times of a result without a reason are those of a measurement.
local function is_measured(value)
  if not sequences.all(TIMES, function(name) return value[name] end) then return false end
  local is_whole = math.type(value.samples) == "integer" and value.samples > 0
  return is_whole and value.time_us >= rows.TIME_LEAST_US and value.high_us <= rows.TIME_MOST_US
    and value.low_us >= 0 and value.low_us <= value.time_us and value.time_us <= value.high_us
end

-- Whether a value has the form of the results that this module writes.
local function is_result(value)
  if type(value) ~= "table" or not value.strategy or not value.epilogue then return false end
  for name, found in pairs(value) do
    if texts[name] and not texts[name](found) then return false end
    local is_time = is_number[name] or type(name) == "string" and name:find("_us$")
    if is_time and (type(found) ~= "number" or found < 0) then return false end
  end
  if value.reason then return not value.left_out or type(value.timeout) == "number" end
  return is_measured(value)
end

-- Whether a decoded file has the form that this module writes.
local function is_cache(content)
  if type(content) ~= "table" or content.version ~= VERSION or type(content.results) ~= "table" then
    return false
  end
  for key, results in pairs(content.results) do
    if type(key) ~= "string" or type(results) ~= "table" or #results == 0 then return false end
    if not sequences.all(results, is_result) then return false end
  end
  return true
end

-- The results that the file at `path` holds.
local function read(path)
  if not file.exists(path) then return {} end
  local content = json.decode(fail.unless(file.read(path)))
  if not is_cache(content) then
    fail.input("%s: is no cache of this gentables, or damaged; remove it, or use another --cache", path)
  end
  return content.results
end

-- Opens the file at `path` (nil: the default path). `fresh`: its results are ignored.
function cache.open(path, fresh)
  path = path or default_path()
  return setmetatable({ path = path, results = read(path), fresh = fresh }, cache)
end

-- The other facts that a candidate's times depend on.
local function parts_of(job, name)
  if name == "AUTO" then return job.incumbent or "" end
  local row = lists.find("strategies", name)
  local is_symmetric = row and row.cuda and row.cuda.nccl and row.cuda.nccl.symmetric
  if is_symmetric then return environment.has_log_of_nccl(job.environment) and "without a log" or "" end
  local candidate = job.candidates[name]
  return candidate and candidate.plugin and job.libraries or ""
end

local function key_of(job, cell, name, epilogue)
  return table.concat({ job.print, cell.op, cell.dtype, tostring(cell.size), "tp" .. cell.world_size,
    "nodes" .. job.nodes, job.arch, cell.splits or "", cell.fusion or "", tostring(cell.hidden_size or ""),
    name, epilogue, parts_of(job, name) }, " ")
end

local function epilogues_of(cell) return cell.fusion and { "fused", "separate", "alone" } or { "none" } end

-- Adds the stored results of a candidate to a cell. A candidate that was left out with at least this timeout
-- is left out again.
local function take_known(self, job, cell, name)
  local complete, found = true, {}
  for _, epilogue in ipairs(epilogues_of(cell)) do
    local stored = self.results[key_of(job, cell, name, epilogue)]
    complete = complete and stored ~= nil
    for _, result in ipairs(stored or {}) do
      local is_its_own = result.strategy == name and result.epilogue == epilogue
      complete = complete and is_its_own and not (result.left_out and result.timeout < job.timeout)
      found[#found + 1] = result
    end
  end
  if not complete then return end
  cell.known[name] = true
  for _, result in ipairs(found) do
    if result.left_out then
      job.excluded[name], job.excluded_at[name] = result.reason, cell.world_size
    else
      table.insert(result.reason and cell.no_time or cell.results, result)
    end
  end
end

-- Whether a cell's times are of several runs.
local function are_of_several_passes(cell)
  local first = cell.results[1]
  return sequences.any(cell.results, function(result) return result.pass ~= first.pass end)
end

-- Adds the stored results to the cells of a job.
function cache:take(job)
  job.print = provenance.hash(json.encode({ machine = job.machine, bench = job.identity,
    launcher = job.launcher or "", samples = job.samples, warm_up = job.warm_up, launches = job.launches,
    sync = job.sync, loopback = backends[job.backend].loopback(job) or "",
    variables = environment.variables(job.environment) }))
  for _, cell in ipairs(job.cells) do
    cell.known = {}
    for _, name in ipairs(self.fresh and {} or cell.candidates) do take_known(self, job, cell, name) end
    if are_of_several_passes(cell) then cell.known, cell.results, cell.no_time = {}, {}, {} end
  end
end

-- Whether a cell at this number of ranks lacks a candidate's result.
local function is_missing(job, cell, world_size)
  return cell.world_size == world_size and sequences.any(cell.candidates, function(name)
    return not (cell.known[name] or job.excluded[name])
  end)
end

-- Whether any cell at this number of ranks lacks a result.
function cache.has_missing(_, job, world_size)
  return sequences.any(job.cells, function(cell) return is_missing(job, cell, world_size) end)
end

-- The cells at this number of ranks that have to be measured. Times of different launches are not comparable:
-- if the cache lacks one candidate of a cell, all are measured, except those that are excluded already.
function cache.missing(_, job, world_size)
  local missing = sequences.filter(job.cells, function(cell) return is_missing(job, cell, world_size) end)
  for _, cell in ipairs(missing) do cell.results, cell.no_time = {}, {} end
  job.measured = (job.measured or 0) + #missing
  return missing
end

-- The results of a cell to be stored, by key. For a candidate without a time in one launch: only the reason;
-- for one that was left out at this number of ranks: the reason and the timeout.
local function kept_of(job, cell)
  local kept = {}
  for _, entry in ipairs(cell.no_time) do
    kept[key_of(job, cell, entry.strategy, entry.epilogue)] = { entry }
  end
  local has_none = {}
  for key in pairs(kept) do has_none[key] = true end
  for _, result in ipairs(cell.results) do
    local key = key_of(job, cell, result.strategy, result.epilogue)
    if not has_none[key] then table.insert(sequences.at(kept, key), result) end
  end
  for _, name in ipairs(cell.candidates) do
    local reason = job.excluded[name]
    for _, epilogue in ipairs(reason and epilogues_of(cell) or {}) do
      local here = job.excluded_at[name] == cell.world_size
      kept[key_of(job, cell, name, epilogue)] = here and { { strategy = name, epilogue = epilogue,
        reason = reason, left_out = true, timeout = job.timeout } } or nil
    end
  end
  return kept
end

-- The number of the pass that is kept next.
local function next_pass(results)
  local last = 0
  for _, stored in pairs(results) do
    for _, result in ipairs(stored) do last = math.max(last, result.pass or 0) end
  end
  return last + 1
end

-- Adds the results of these cells and writes the file. Results that other processes have added meanwhile
-- stay.
function cache:save(job, cells)
  if #cells == 0 then return end
  local folder = self.path:match("^(.*)/[^/]*$")
  if folder then fail.unless(file.make_folder(folder)) end
  local lock <close> = fail.unless_done(io.open(self.path .. ".lock", "a"))
  local locked, message = system.lock(lock, LOCK_PATIENCE)
  if not locked then fail.work("%s.lock: %s; another gentables writes there", self.path, message) end
  self.results = read(self.path)
  local pass = next_pass(self.results)
  for _, cell in ipairs(cells) do
    for _, result in ipairs(cell.results) do result.pass = pass end
    for key, results in pairs(kept_of(job, cell)) do self.results[key] = results end
  end
  local text = json.encode({ version = VERSION, results = self.results })
  fail.unless_done(file.write(self.path, text .. "\n"))
end

return cache
