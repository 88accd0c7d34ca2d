-- Shared by tests of whole sweeps: a folder with a spec, and a stand-in bench that fails on demand.
--
--   local small_spec, TestSweep = table.unpack((require "unit.sweep.lib_sweep"))
local lu = require "luaunit"
local file = require "core.file"
local lib = require "unit.sweep.lib"
local process = require "core.process"
local provenance = require "rows.provenance"
local rows = require "core.rows"

local TestSweep = {}

local SOON = 60 -- seconds, above any time that it needs

-- Eight cells; MPI_SM is unavailable, TWOSHOT cannot split one token over two ranks: 20 rows and 12 without a
-- time.
local small_spec = [[
return { arch = "host", tp = { 2 }, fusions = { "NONE", "RESIDUAL_RMS_NORM" }, hidden_sizes = { 64, 128 },
  num_tokens = { 1, 4 }, strategies = { "MPI", "ONESHOT", "TWOSHOT", "MPI_SM" },
  limits = { launches = 1 } }
]]

function TestSweep:setUp()
  self.folder = lib.scratch()
  self.log = self.folder .. "/log"
  self.csv = self.folder .. "/benchmark.tp2.host.csv"
  self.json = self.folder .. "/benchmark.tp2.host.json"
  lib.write(self.folder .. "/spec.lua", small_spec)
end

function TestSweep:tearDown() lib.clean(self.folder) end

function TestSweep:environment(settings)
  local list = { "STAND_IN_LOG=" .. self.log }
  for name, value in pairs(settings or {}) do list[#list + 1] = "STAND_IN_" .. name .. "=" .. value end
  return list
end

-- Sweeps; returns how it ended, stdout, stderr.
function TestSweep:sweep(settings, ...) return lib.sweep(self.folder, self:environment(settings), ...) end

-- Sweeps and expects success.
function TestSweep:sweep_well(settings, ...)
  local out, err = lib.ends(0, "", self:sweep(settings, ...))
  lu.assertEquals(err, "")
  return out
end

-- Sweeps well; requests() then returns those of later sweeps alone.
function TestSweep:swept(settings)
  self:sweep_well(settings)
  self:requests()
end

-- Sweeps well with this many requests.
function TestSweep:measures(count)
  self:sweep_well()
  lu.assertEquals(#self:requests(), count)
end

-- Sweeps and expects this exit code and a text on stderr. Returns stderr and stdout.
function TestSweep:ends_with(code, text, settings, ...)
  local out, err = lib.ends(code, text, self:sweep(settings, ...))
  return err, out
end

-- Makes tables of the rows, with this exit code and text on stderr. Returns stderr.
function TestSweep:generates(code, text)
  local _, err = lib.ends(code, text,
    lib.run { lib.gentables, "generate", "--data-dir", self.folder, "--arch", "host" })
  return err
end

-- The spec becomes small_spec with `to` in place of the pattern `from`.
function TestSweep:change_spec(from, to)
  lib.write(self.folder .. "/spec.lua", (small_spec:gsub(from, to)))
end

-- The requests to the bench since the last call.
function TestSweep:requests()
  local found = {}
  if file.exists(self.log) then
    for line in lib.read(self.log):gmatch("[^\n]+") do
      if line:find("^measure") then found[#found + 1] = line end
    end
    os.remove(self.log)
  end
  return found
end

-- Every process of the bench.
function TestSweep:pids()
  local found = {}
  for pid in (file.read(self.log) or ""):gmatch("pid (%d+)") do found[#found + 1] = math.tointeger(pid) end
  return found
end

function TestSweep:leaves_nothing_running()
  local pids = self:pids()
  lu.assertTrue(#pids > 0, "no bench wrote its process into the log")
  for _, pid in ipairs(pids) do lu.assertFalse(lib.runs(pid)) end
end

function TestSweep:has_all_rows()
  lu.assertEquals(#rows.records(self.csv), 20)
  lu.assertEquals(#provenance.read(self.json).no_time, 12)
  lu.assertFalse(file.exists(self.csv .. ".part"))
end

-- Starts a sweep with a bench that hangs at the first request that contains `text`, and sends it a signal
-- there. Returns how it ended, stdout and stderr.
function TestSweep:interrupt_at(text, signal, ...)
  local settings = self:environment { FAULT = "hang", AT = text }
  local child = assert(process.start(lib.sweep_command(self.folder, ...), settings))
  lib.wait_for(child, function() return (file.read(self.log) or ""):find(text, 1, true) end)
  child:kill(signal)
  while child:read_line(SOON) do end
  return child:close(SOON), child:errors(), child
end

return { small_spec, TestSweep }
