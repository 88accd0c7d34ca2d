-- The budget of gentables sweep, with a stand-in bench: what it bounds, how it ends a sweep, and the sweep
-- that follows.
local lu = require "luaunit"
local file = require "core.file"
local json = require "codec.json"
local lib = require "unit.sweep.lib"
local provenance = require "rows.provenance"
local rows = require "core.rows"
local _, TestBudgets = table.unpack((require "unit.sweep.lib_sweep"))

local SIGTERM = 15

-- ---- how long a sweep measures ----------------------------------------------------------------

-- Sweeps what may change a choice, and expects this exit code. Returns the seconds that the first request has
-- left (nil: it has no limit), stdout and stderr.
function TestBudgets:adaptive(code, ...)
  local out, err = lib.ends(code, "", lib.sweep_by(nil, self.folder, self:environment(), ...))
  local asked = self:requests()
  local left = asked[1] and asked[1]:match(" left_us=(%d+) ")
  return left and tonumber(left) / 1e6, out, err
end

-- Of 60 s it reserves 1.7 s for the end.
function TestBudgets:test_a_sweep_has_60_seconds_by_default()
  local left = self:adaptive(0)
  lu.assertTrue(left > 40 and left < 58.4, left)
  lu.assertNil((self:adaptive(0, "--fresh", "--budget", "none")))
  lu.assertNil((self:adaptive(0, "--fresh", "--budget", "0")))
  local _, _, err = self:adaptive(2, "--budget", "soon")
  lu.assertStrContains(err, '--budget: "soon" is not a number from 0 to 1000000000 or none')
end

function TestBudgets:test_the_spec_may_have_another_budget()
  self:change_spec("launches = 1", "launches = 1, seconds = 200")
  local left = self:adaptive(0)
  lu.assertTrue(left > 100 and left < 197, left)
  left = self:adaptive(0, "--fresh", "--budget", "90")
  lu.assertTrue(left > 40 and left < 90, left)
  lu.assertNil((self:adaptive(0, "--fresh", "--exhaustive")))
  self:change_spec("launches = 1", "launches = 1, seconds = 0")
  lu.assertNil((self:adaptive(0, "--fresh")))
  self:change_spec("launches = 1", "launches = 1, seconds = 1")
  local _, _, err = self:adaptive(2, "--fresh")
  lu.assertStrContains(err, "limits.seconds 1 is too small for one sample per cell; about 2 seconds")
  self:change_spec("launches = 1", "launches = 1, seconds = -1")
  _, _, err = self:adaptive(2)
  lu.assertStrContains(err, "seconds is -1; valid is a whole number from 0 to 1000000000")
end

-- Rows do not depend on the budget: with another one they stay, and no tool finds another spec.
function TestBudgets:test_another_budget_in_the_spec_measures_nothing_again()
  self:swept()
  local before = lib.read(self.csv) .. lib.read(self.json)
  self:change_spec("launches = 1", "launches = 1, seconds = 200")
  lu.assertStrContains(self:sweep_well(), "up to date, 20 rows")
  lu.assertEquals(self:requests(), {})
  lu.assertEquals(lib.read(self.csv) .. lib.read(self.json), before)
  lu.assertEquals(self:generates(0, ""), "")
end

-- TP 2 has half of the time; it needs little, so that TP 4 has nearly all of it.
function TestBudgets:test_tp_sizes_share_the_budget()
  self:change_spec("tp = { 2 }", "tp = { 2, 4 }")
  self:sweep_well({}, "--budget", "200")
  local left, asked = {}, self:requests()
  for i, request in ipairs { asked[1], asked[9] } do left[i] = tonumber(request:match(" left_us=(%d+) ")) end
  lu.assertEquals(#asked, 16)
  lu.assertTrue(left[1] > 60e6 and left[1] < 97.6e6, left[1])
  lu.assertTrue(left[2] > 120e6 and left[2] < 195.6e6, left[2])
end

-- Sixteen launches of each of five TP sizes take longer to start.
function TestBudgets:test_the_default_grows_for_a_spec_that_needs_more()
  self:change_spec("tp = { 2 }", "tp = { 2, 3, 4, 5, 6 }")
  lib.write(self.folder .. "/spec.lua",
    (lib.read(self.folder .. "/spec.lua"):gsub("launches = 1", "launches = 16")))
  local left, out = self:adaptive(0)
  lu.assertStrContains(out, "budget: 85 s, because the default of 60 s is too small for one sample per cell")
  lu.assertTrue(left > 12 and left < 17, left)
end

function TestBudgets:test_a_budget_bounds_each_cell()
  self:sweep_well({}, "--budget", "20")
  lu.assertStrContains(self:requests()[1], " budget_us=40000 ")
end

function TestBudgets:test_a_budget_that_is_too_small_gives_the_required_one()
  self:ends_with(2, "budget 0.5 is too small for one sample per cell; about 2 seconds", {}, "--budget", "0.5")
end

-- One cell of 1 GiB: its time is estimated from its bytes, before any bench starts.
function TestBudgets:test_a_budget_that_is_hopeless_for_such_messages_is_refused()
  lib.write(self.folder .. "/spec.lua", [[return { arch = "host", tp = { 2 }, dtypes = { "float32" },
    fusions = { "NONE" }, hidden_sizes = { 8192 }, num_tokens = { 32768 }, strategies = { "MPI", "ONESHOT" },
    limits = { launches = 1, message_bytes = 1 << 30 } }]])
  local err = self:ends_with(2, "", {}, "--budget", "5")
  local seconds = tonumber(err:match("too small for one sample per cell; about (%d+) seconds"))
  lu.assertTrue(seconds and seconds > 8 and seconds < 200, err)
  lu.assertEquals(self:requests(), {})
  self:sweep_well({}, "--budget", tostring(4 * seconds))
end

-- Time that is reserved for the end is not the bench's; without a budget it has all the time that it needs.
function TestBudgets:test_each_request_has_the_rest_of_the_budget()
  self:sweep_well({}, "--budget", "20")
  local before, asked = 19.2e6, self:requests()
  lu.assertEquals(#asked, 8)
  for _, request in ipairs(asked) do
    local left = tonumber(request:match(" left_us=(%d+) "))
    lu.assertTrue(left and left < before, request)
    before = left
  end
  self:sweep_well({}, "--fresh")
  lu.assertNotStrContains(self:requests()[1], "left_us")
end

-- ---- what follows -----------------------------------------------------------------------------

-- Ends a sweep of two launches by its budget at one of its requests.
function TestBudgets:cut_off_at(id, ...)
  self:change_spec("launches = 1", "launches = 2")
  local out = self:sweep_well({ FAULT = "spent", AT = ("id=%d "):format(id) }, "--budget", "20", ...)
  lu.assertEquals(#self:requests(), id)
  lu.assertFalse(provenance.read(self.json).complete)
  return out
end

local HOW_TO_REFINE = "The budget of 20 s ended the sweep at TP 2. The next sweep keeps the rows and "
  .. "measures nothing; `sweep --refine`, or the target refine-tables, continues on them."

-- Whether the last line of an output has the way to refine.
local function ends_with_refine(out) return out:sub(-#HOW_TO_REFINE) == HOW_TO_REFINE end

function TestBudgets:test_a_sweep_that_its_budget_ended_is_finished()
  lu.assertTrue(ends_with_refine(self:cut_off_at(4)))
  local before = lib.read(self.csv) .. lib.read(self.json)
  local words = ("up to date, %d rows"):format(#assert(rows.records(self.csv)))
  for _, more in ipairs { {}, { "--budget", "100" } } do
    local out = self:sweep_well({}, table.unpack(more))
    lu.assertStrContains(out, words)
    lu.assertTrue(ends_with_refine(out), out)
  end
  lu.assertEquals(self:pids(), {})
  lu.assertEquals(lib.read(self.csv) .. lib.read(self.json), before)
  lu.assertFalse(file.exists(self.csv .. ".part"))
end

function TestBudgets:test_the_reports_state_that_its_budget_ended_it()
  self:cut_off_at(4)
  self:generates(0, "")
  lu.assertStrContains(lib.read(self.folder .. "/report.md"), "\n" .. HOW_TO_REFINE .. "\n")
  lib.ends(0, "", lib.run { lib.gentables, "report", "--data-dir", self.folder, "--arch", "host", "--out",
    self.folder })
  lu.assertStrContains(lib.read(self.folder .. "/report.html"), "The budget of 20 s ended the sweep at TP 2.")
  self:sweep_well({}, "--refine")
  self:generates(0, "")
  lu.assertNotStrContains(lib.read(self.folder .. "/report.md"), "ended the sweep")
end

-- The time of that stage is unknown when it begins.
function TestBudgets:test_the_gain_of_refine_is_a_stage_of_the_progress()
  self:change_spec("launches = 1", "launches = 2")
  local path, found = self.folder .. "/progress", nil
  local environment = self:environment { FAULT = "spent", AT = "id=4 " }
  environment[#environment + 1] = "GENTABLES_PROGRESS=" .. path
  local out = lib.ends(0, "", lib.sweep_by(nil, self.folder, environment, "--budget", "20"))
  lu.assertStrContains(out, "`--refine`, about ")
  for text in lib.read(path):gmatch("[^\n]+") do
    local line = json.decode(text)
    found = found or line.text == "TP 2: what --refine would gain" and line
  end
  lu.assertIs(assert(found, lib.read(path)).left_s, json.null)
end

function TestBudgets:test_refine_continues_on_the_same_rows()
  local out = self:cut_off_at(4)
  lu.assertStrContains(out, "TP 2: the budget ended the sweep: 1 of 2 launches, 5 cells not reached")
  lu.assertNotStrContains(out, "unlikely to change a choice")
  lu.assertNil(provenance.read(self.json).derived)
  out = self:sweep_well({}, "--refine")
  lu.assertStrContains(out, "continues on the rows of an earlier sweep, which its budget ended")
  lu.assertStrContains(out, "TP 2: 8 of 8 cells to measure")
  lu.assertEquals(#self:requests(), 16 - 3)
  self:has_all_rows()
  lu.assertNil(provenance.read(self.json).complete)
  for _, record in ipairs(rows.records(self.csv)) do lu.assertEquals(record.samples, 40) end
  out = self:sweep_well({}, "--refine")
  lu.assertStrContains(out, "up to date, 20 rows")
  lu.assertNotStrContains(out, "ended the sweep")
  lu.assertEquals(self:requests(), {})
end

function TestBudgets:test_a_refinement_in_another_regime_does_not_count()
  self:cut_off_at(4)
  local out = self:sweep_well({ ROUNDTRIPS = "0.4,0.4,0.4,0.1" }, "--refine")
  lu.assertStrContains(out, "TP 2: 2 visits in another regime of the machine do not count")
  self:has_all_rows()
end

-- Also without --refine, which the interrupted sweep had.
function TestBudgets:test_an_interrupted_refinement_resumes()
  self:cut_off_at(4)
  self:interrupt_at("id=6 ", SIGTERM, "--refine")
  lu.assertEquals(#self:requests(), 6)
  self:measures(16 - 3 - 5)
  self:has_all_rows()
  for _, record in ipairs(rows.records(self.csv)) do lu.assertEquals(record.samples, 40) end
end

-- Cells of a spec that grew are measured; the others stay as the budget left them, until --refine.
function TestBudgets:test_a_grown_spec_measures_only_new_cells()
  self:cut_off_at(11)
  self:change_spec("{ 1, 4 }", "{ 1, 4, 16 }")
  lib.write(self.folder .. "/spec.lua",
    (lib.read(self.folder .. "/spec.lua"):gsub("launches = 1", "launches = 2")))
  lu.assertTrue(ends_with_refine(self:sweep_well()))
  local asked = self:requests()
  lu.assertEquals(#asked, 2 * 4)
  for _, request in ipairs(asked) do lu.assertStrContains(request, "num_tokens=16 ") end
  lu.assertNotStrContains(self:sweep_well({}, "--refine"), "ended the sweep")
  lu.assertEquals(#self:requests(), 6)
  lu.assertEquals(#rows.records(self.csv), 32)
end

function TestBudgets:test_refine_contradicts_fresh()
  self:ends_with(2, "--refine keeps rows, and --fresh does not; give one", {}, "--refine", "--fresh")
  self:ends_with(2, "--transport requires a limit as --budget", {}, "--transport", "--budget", "none")
end

function TestBudgets:test_launches_that_a_point_lacks_are_made_up()
  lu.assertStrContains(self:cut_off_at(11),
    "the budget ended the sweep: 2 of 2 launches, every cell reached, but not every point")
  lu.assertEquals(#rows.records(self.csv), 20)
  self:sweep_well({}, "--refine")
  lu.assertEquals(#self:requests(), 6)
  for _, record in ipairs(rows.records(self.csv)) do
    local count = 0
    for _, time in ipairs(record.launches) do count = count + (time and 1 or 0) end
    lu.assertEquals({ count, record.samples }, { 2, 40 })
  end
end

function TestBudgets:test_a_sweep_can_be_cut_off_twice_and_keeps_its_rows()
  self:cut_off_at(4)
  self:cut_off_at(3, "--refine")
  self:sweep_well({}, "--refine")
  lu.assertEquals(#self:requests(), 16 - 3 - 2)
  self:has_all_rows()
end

return require "suites" { { "TestBudgets", TestBudgets } }
