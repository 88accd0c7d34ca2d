-- gentables sweep with mpirun and the bench itself: it writes rows for ranks with a core each and without.
-- Skipped (77) without mpirun. tests/system/faults interrupts and kills such sweeps.
local lu = require "luaunit"
local lib = require "unit.sweep.lib"
local process = require "core.process"
local provenance = require "rows.provenance"
local rows = require "core.rows"

local probe = process.start({ "mpirun", "--version" })
if not probe then require "skip" "no mpirun" end
probe:close(60)

local TestReal = lib.with_folder(lib.scratch)

function TestReal:test_every_tp_size_gets_its_rows()
  lib.write(self.folder .. "/spec.lua", [[
    return { arch = "host", tp = { 2, 4 }, fusions = { "NONE", "RESIDUAL_RMS_NORM" }, hidden_sizes = { 1024 },
      num_tokens = { 1, 64 }, limits = { cell_us = 20000, launches = 2, max_samples = 1000000 } }]])
  local out = lib.ends(0, "", lib.run { lib.gentables, "sweep", "--out", self.folder, "--bench",
    os.getenv("BENCH"), "--exhaustive" })
  lu.assertStrContains(out, "TP 4: 4 of 4 cells to measure")
  for _, size in ipairs { 2, 4 } do
    local csv = ("%s/benchmark.tp%d.host.csv"):format(self.folder, size)
    local record = provenance.read(provenance.path_of(csv))
    local records = rows.records(csv)
    lu.assertEquals(#records + #record.no_time, 4 * 12)
    lu.assertTrue(#records >= 4 * 3)
    lu.assertEquals(record.placement, size > record.machine.cores and "oversubscribed" or "dedicated")
    for _, row in ipairs(records) do lu.assertEquals(row.placement, record.placement) end
  end
end

return require "suites" { { "TestReal", TestReal } }
