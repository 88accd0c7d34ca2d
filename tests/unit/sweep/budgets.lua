-- The budget of gentables sweep, with a stand-in bench: what it bounds, how it ends a sweep, and what the next
-- sweep does.
local lu = require "luaunit"
local lib = require "unit.sweep.lib"
local provenance = require "rows.provenance"
local rows = require "core.rows"
local _, TestBudgets = table.unpack((require "unit.sweep.lib_sweep"))

function TestBudgets:test_a_budget_bounds_each_cell()
  self:sweep_well({}, "--budget", "20")
  lu.assertStrContains(self:requests()[1], " budget_us=200000 ")
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

-- Ends a sweep of two launches by its budget at one of its requests.
function TestBudgets:cut_off_at(id, ...)
  self:change_spec("launches = 1", "launches = 2")
  local out = self:sweep_well({ FAULT = "spent", AT = ("id=%d "):format(id) }, "--budget", "20", ...)
  lu.assertEquals(#self:requests(), id)
  lu.assertFalse(provenance.read(self.json).complete)
  return out
end

function TestBudgets:test_a_sweep_that_its_budget_cut_off_is_unfinished_and_resumes()
  local out = self:cut_off_at(4)
  lu.assertStrContains(out, "TP 2: budget spent: 1 of 2 launches, 5 cells not reached; the next")
  lu.assertNotStrContains(out, "unlikely to change a choice")
  lu.assertNil(provenance.read(self.json).derived)
  out = self:sweep_well()
  lu.assertStrContains(out, "resumes where the budget of an earlier sweep was spent")
  lu.assertStrContains(out, "TP 2: 8 of 8 cells to measure")
  lu.assertEquals(#self:requests(), 16 - 3)
  self:has_all_rows()
  lu.assertNil(provenance.read(self.json).complete)
  for _, record in ipairs(rows.records(self.csv)) do lu.assertEquals(record.samples, 40) end
  lu.assertStrContains(self:sweep_well(), "up to date, 20 rows")
  lu.assertEquals(self:requests(), {})
end

function TestBudgets:test_launches_that_a_point_lacks_are_made_up()
  lu.assertStrContains(self:cut_off_at(11),
    "budget spent: 2 of 2 launches, every cell reached, but not every point; the next sweep resumes")
  lu.assertEquals(#rows.records(self.csv), 20)
  self:measures(6)
  for _, record in ipairs(rows.records(self.csv)) do
    local count = 0
    for _, time in ipairs(record.launches) do count = count + (time and 1 or 0) end
    lu.assertEquals({ count, record.samples }, { 2, 40 })
  end
end

function TestBudgets:test_a_sweep_can_be_cut_off_twice_and_keeps_its_rows()
  self:cut_off_at(4)
  self:cut_off_at(3)
  self:measures(16 - 3 - 2)
  self:has_all_rows()
end

return require "suites" { { "TestBudgets", TestBudgets } }
