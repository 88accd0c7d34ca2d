-- The files of one TP size of a sweep (tp_size.lua): rows and provenance.
local fail = require "base.fail"
local file = require "core.file"
local provenance = require "rows.provenance"
local rows = require "core.rows"

local writing = {}

-- The text of the provenance at a path; nil without one.
function writing.provenance_text(path) return file.exists(path) and fail.unless(file.read(path)) or nil end

-- How many of its nodes are slow (screening.lua); nil: none, or not known.
local function slow_nodes(self, job)
  local slow = job.slow_nodes and self.nodes - (#job.hosts.names - job.slow_nodes) or 0
  return slow > 0 and slow or nil
end

local function provenance_of(self, job)
  local measured = self.placement or self.continues or not self.old
  local regime, complete, budget_s = self:chosen(), nil, self:ended_by(job)
  if budget_s then complete = false end
  return {
    complete = complete, -- false, or absent
    budget_s = budget_s,
    refine = budget_s and self:refinement() or nil,
    world_size = self.size,
    nodes = self.ranks.nodes,
    beside = self.beside or self.old and self.old.beside,
    network = self.ranks.nodes and provenance.network_of(job.network, slow_nodes(self, job)) or nil,
    arch = job.arch,
    fingerprint = self.fingerprint,
    machine = self.machine,
    bench = job.identity,
    launch = job.launch,
    spec = job.recorded_spec,
    exhaustive = job.exhaustive or nil,
    derived = self.derived,
    launches = regime and regime.launch or self.old and self.old.launches,
    roundtrip_us = regime and regime.roundtrip_us or self.old and self.old.roundtrip_us,
    devices = self.devices and #self.devices > 0 and self.devices or self.old and self.old.devices,
    placement = self.with[1] and self.with[1].placement or self.placement or "unknown",
    date = measured and os.date("!%Y-%m-%dT%H:%M:%SZ") or self.old.date,
    no_time = self.without,
    disturbed = #self.disturbed > 0 and self.disturbed or nil,
  }
end

-- Updates the spec in the provenance of rows that stay: earlier versions recorded only its hash, and the
-- workload may have changed. Returns true | nil, message.
local function update_spec(self, job)
  if provenance.same(self.old.spec, job.recorded_spec) then return true end
  self.old.spec = job.recorded_spec
  return provenance.write(self.csv, fail.unless(file.read(self.csv)), self.old)
end

-- Writes the rows that tp_size.settle collected, and their provenance, if they have changed. If nothing has a
-- time, or no bench starts, the existing files stay; without a file of rows, the provenance alone is written,
-- with the reasons. Raises if another program has written rows since the sweep began. Returns whether there
-- are new rows.
function writing.write(self, job)
  local ok, message, has_new_rows
  if writing.provenance_text(self.json) ~= self.found then
    fail.work("%s: another gentables has written it since this sweep began; the journal %s keeps the results",
      self.json, self.part)
  end
  if self.refusal then
    ok = file.exists(self.csv)
    if not ok then ok, message = provenance.write_alone(self.csv, provenance_of(self, job)) end
  elseif self.current then
    ok, message = update_spec(self, job)
  else
    if #self.with == 0 then return false end
    has_new_rows = true
    ok, message = rows.text(self.csv, self.with)
    if ok then ok, message = provenance.write(self.csv, ok, provenance_of(self, job)) end
  end
  if not ok then fail.work("%s; the journal %s keeps the results", message, self.part) end
  return has_new_rows or false
end

return writing
