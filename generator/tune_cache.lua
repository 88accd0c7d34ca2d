-- What `gentables tune` measured before: one JSON file, read and written by this process alone, whole or not
-- at
-- all. Ranks never see it: they measure what they are told to, so that a hit on one and a miss on another
-- cannot
-- be.
--
-- The key of a result: machine, library and bench, libraries of plug-ins, how it was measured; op, data type,
-- bytes, ranks, epilogue and candidate.
local fail = require "fail"
local file = require "core.file"
local json = require "json"
local provenance = require "provenance"

local cache = {}
cache.__index = cache

local VERSION = 1

local function default_path()
  local folder = os.getenv("XDG_CACHE_HOME")
  if not folder or folder == "" then folder = (os.getenv("HOME") or ".") .. "/.cache" end
  return folder .. "/gentables/tune.json"
end

-- Opens the file at `path` (nil: the usual one). `fresh`: nothing in it counts.
function cache.open(path, fresh)
  local self = setmetatable({ path = path or default_path(), results = {}, fresh = fresh }, cache)
  if not file.exists(self.path) then return self end
  local text = fail.unless(file.read(self.path))
  local content = json.decode(text)
  if type(content) ~= "table" or content.version ~= VERSION or type(content.results) ~= "table" then
    fail.input("%s: is no cache of this gentables; remove it, or name another by --cache", self.path)
  end
  self.results = content.results
  return self
end

local function key_of(job, cell, name, epilogue)
  local candidate = job.candidates[name]
  return table.concat({ job.print, cell.op, cell.dtype, tostring(cell.size), "tp" .. cell.world_size,
    "nodes1", job.arch, cell.splits or "", cell.fusion or "", tostring(cell.hidden_size or ""), name,
    epilogue, candidate and candidate.plugin and job.libraries or "" }, " ")
end

local function epilogues_of(cell) return cell.fusion and { "fused", "separate", "alone" } or { "none" } end

-- Takes what is known into the cells.
function cache:take(job)
  job.print = provenance.hash(json.encode({ machine = job.machine, bench = job.identity,
    launcher = job.launcher or "", samples = job.samples, warm_up = job.warm_up, launches = job.launches,
    sync = job.sync }))
  for _, cell in ipairs(job.cells) do
    cell.known = {}
    for _, name in ipairs(self.fresh and {} or cell.candidates) do
      local complete, found = true, {}
      for _, epilogue in ipairs(epilogues_of(cell)) do
        local stored = self.results[key_of(job, cell, name, epilogue)]
        complete = complete and stored ~= nil
        for _, result in ipairs(stored or {}) do found[#found + 1] = result end
      end
      if complete then
        cell.known[name] = true
        for _, result in ipairs(found) do
          local list = result.reason and cell.no_time or cell.results
          list[#list + 1] = result
        end
      end
    end
  end
end

-- The cells at this number of ranks with candidates that are not known, which are their candidates from here
-- on.
-- Times of different launches are not compared: where one candidate of a cell is unknown, all are measured.
function cache.missing(_, job, world_size)
  local missing = {}
  for _, cell in ipairs(job.cells) do
    local open = false
    for _, name in ipairs(cell.candidates) do open = open or not cell.known[name] end
    if cell.world_size == world_size and open then
      cell.results, cell.no_time = {}, {}
      missing[#missing + 1] = cell
    end
  end
  job.measured = (job.measured or 0) + #missing
  return missing
end

-- Adds what was measured, and writes the file.
function cache:save(job)
  if (job.measured or 0) == 0 then return end
  for _, cell in ipairs(job.cells) do
    local lists_of = {}
    local all = table.move(cell.no_time, 1, #cell.no_time, #cell.results + 1, { table.unpack(cell.results) })
    for _, result in ipairs(all) do
      local key = key_of(job, cell, result.strategy, result.epilogue)
      lists_of[key] = lists_of[key] or {}
      table.insert(lists_of[key], result)
    end
    for key, results in pairs(lists_of) do self.results[key] = results end
  end
  local folder = self.path:match("^(.*)/[^/]*$")
  if folder then fail.unless(file.make_folder(folder)) end
  local text = json.encode({ version = VERSION, results = self.results })
  local written, message = file.write(self.path, text .. "\n")
  if not written then fail.work("%s", message) end
end

return cache
