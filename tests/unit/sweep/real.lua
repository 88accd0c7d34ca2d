-- gentables sweep with mpirun and the bench itself: it writes rows for ranks with a core each and without,
-- and no rank outlives the sweep, after any end. Skipped (77) without mpirun.
local lu = require "luaunit"
local file = require "core.file"
local lib = require "unit.sweep.lib"
local process = require "core.process"
local provenance = require "rows.provenance"
local rows = require "core.rows"

local SIGINT, SIGKILL = 2, 9
local SOON = 60 -- seconds, above any time that it needs

local probe = process.start({ "mpirun", "--version" })
if not probe then
  print("skipped: no mpirun")
  return 77
end
probe:close(SOON)

local TestReal = {}

function TestReal:setUp()
  self.folder = lib.scratch()
  -- A name of its own for the bench, so that its ranks can be distinguished from others'.
  self.bench = self.folder .. "/bench"
  assert(os.execute(("ln -s '%s' '%s'"):format(os.getenv("BENCH"), self.bench)))
  self.csv = self.folder .. "/benchmark.tp2.host.csv"
end

function TestReal:tearDown() lib.clean(self.folder) end

function TestReal:spec(tp, num_tokens, cell_us)
  lib.write(self.folder .. "/spec.lua", ([[
    return { arch = "host", tp = { %s }, fusions = { "NONE", "RESIDUAL_RMS_NORM" }, hidden_sizes = { 1024 },
      num_tokens = { %s }, limits = { cell_us = %d, launches = 2, max_samples = 1000000 } }]]):format(tp,
    num_tokens, cell_us))
end

function TestReal:command(...)
  return { lib.gentables, "sweep", "--out", self.folder, "--bench", self.bench, ... }
end

-- The processes of this bench, with mpirun.
function TestReal:processes()
  local found = {}
  for _, pid in ipairs(assert(file.list("/proc"))) do
    local handle <close> = pid:find("^%d+$") and io.open("/proc/" .. pid .. "/cmdline") or nil
    local command = handle and handle:read("a") or ""
    if command:find(self.bench, 1, true) and command:find("--serve", 1, true) then found[#found + 1] = pid end
  end
  return found
end

function TestReal:test_every_tp_size_gets_its_rows()
  self:spec("2, 4", "1, 64", 20000)
  local ended, out, err = lib.run(self:command("--exhaustive"))
  lu.assertEquals(ended, "exit code 0", err)
  lu.assertStrContains(out, "TP 4: 4 of 4 cells to measure")
  for _, size in ipairs { 2, 4 } do
    local csv = ("%s/benchmark.tp%d.host.csv"):format(self.folder, size)
    local record = provenance.read(provenance.path_of(csv))
    local records = rows.records(csv)
    lu.assertEquals(#records + #record.no_time, 4 * 10)
    lu.assertTrue(#records >= 4 * 3)
    lu.assertEquals(record.placement, size > record.machine.cores and "oversubscribed" or "dedicated")
    for _, row in ipairs(records) do lu.assertEquals(row.placement, record.placement) end
  end
  lu.assertEquals(self:processes(), {})
end

-- Starts a sweep and sends it a signal once the journal has a cell: a sweep of 20 s, so that it is far from
-- its end, and from that of a launch, even if this test gets no processor meanwhile.
function TestReal:interrupted_by(signal)
  self:spec("2", "1, 4, 16, 64, 256", 1000000)
  local child = assert(process.start(self:command("--exhaustive")))
  lib.wait_for(child, function() return (file.read(self.csv .. ".part") or ""):find("\ndone\n", 1, true) end)
  lu.assertTrue(#self:processes() >= 3)
  child:kill(signal)
  lib.wait_for(child, function() return #self:processes() == 0 end)
  return child:close(SOON), child:errors()
end

function TestReal:test_an_interrupted_sweep_leaves_no_rank_and_goes_on()
  local ended, err = self:interrupted_by(SIGINT)
  lu.assertEquals(ended, "exit code 130", err)
  local out
  ended, out, err = lib.run(self:command("--budget", "5"))
  lu.assertEquals(ended, "exit code 0", err)
  lu.assertStrContains(out, "resumes an interrupted sweep")
  lu.assertEquals(self:processes(), {})
end

function TestReal:test_a_killed_sweep_leaves_no_rank()
  lu.assertStrContains(self:interrupted_by(SIGKILL), "killed by SIGKILL")
end

return require "suites" { { "TestReal", TestReal } }
