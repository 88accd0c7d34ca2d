-- journal.lua: the journal of an interrupted sweep, cut off anywhere.
local lu = require "luaunit"
local failure = require "failure"
local file = require "core.file"
local journal = require "sweep.journal"
local lib = require "unit.sweep.lib"
local cell_records = require "rows.cell_records"
local system = require "core.system"

local TestJournal = {}

function TestJournal:setUp()
  self.folder = lib.scratch()
  self.path = self.folder .. "/rows.csv.part"
end

function TestJournal:tearDown() lib.clean(self.folder) end

local function cell_with(num_tokens)
  return { world_size = 2, op = "allreduce", dtype = "bfloat16", fusion = "NONE", hidden_size = 64,
    num_tokens = num_tokens, mode = "eager", size = 128 * num_tokens }
end

local function row(cell, time_us)
  return cell_records.record(cell, "MPI", { size = cell.size, time_us = time_us, low_us = time_us,
    high_us = time_us,
    samples = 9, min_us = 0.5, p95_us = 2.0, p99_us = 3.0, skew_us = 0.0, bound_us = 0.25,
    accumulate = "native", placement = "dedicated", bits = "0b" })
end

local function add(into, num_tokens)
  local cell = cell_with(num_tokens)
  local without = cell_records.record(cell, "TWOSHOT", { reason = "fewer tokens than ranks" })
  into:add(cell, { launch = 1, roundtrip_us = 0.25 }, { row(cell, 1.25) }, { without })
end

local function begun(path, ...)
  local into = journal.open(path)
  into:begin(...)
  return into
end

function TestJournal:write(...)
  local into = begun(self.path, "f00d", false, false)
  for _, num_tokens in ipairs { ... } do add(into, num_tokens) end
  into:close()
end

function TestJournal:test_added_cells_are_read_back()
  self:write(1, 4)
  local found = journal.read(self.path, { world_size = 2 })
  lu.assertEquals(found.fingerprint, "f00d")
  lu.assertFalse(found.fresh)
  lu.assertEquals(#found.cells, 2)
  lu.assertEquals(found.cells[2].rows, { row(cell_with(4), 1.25) })
  lu.assertEquals(found.cells[2].no_time[1].reason, "fewer tokens than ranks")
end

function TestJournal:test_a_new_journal_starts_empty_and_a_continued_one_does_not()
  self:write(1)
  local into = begun(self.path, "f00d", false, true)
  add(into, 4)
  into:close()
  lu.assertEquals(#journal.read(self.path, { world_size = 2 }).cells, 2)
  begun(self.path, "beef", true, false):close()
  lu.assertEquals(journal.read(self.path, { world_size = 2 }),
    { fingerprint = "beef", fresh = true, cells = {}, damaged = 0 })
end

-- Cut at every byte: only complete cells are read, none of them wrong, and later cells are read, too.
function TestJournal:test_cut_off_at_every_byte_it_keeps_the_whole_cells_before()
  self:write(1, 4)
  local text = lib.read(self.path)
  local _, head = text:find("begin [^\n]*\n")
  local _, first = text:find("done [^\n]*\n")
  for size = 0, #text do
    lib.write(self.path, text:sub(1, size))
    local found = journal.read(self.path, { world_size = 2 })
    local whole = size < head and -1 or size < first and 0 or size < #text and 1 or 2
    lu.assertEquals(found and #found.cells or -1, whole, size)
    for i, cell in ipairs(found and found.cells or {}) do
      lu.assertEquals(cell.rows, { row(cell_with(i == 1 and 1 or 4), 1.25) }, size)
    end
    if found then
      local into = begun(self.path, "f00d", false, true)
      add(into, 16)
      into:close()
      local cells = journal.read(self.path, { world_size = 2 }).cells
      lu.assertEquals(cells[#cells].rows, { row(cell_with(16), 1.25) }, size)
    end
  end
end

-- The cells that a changed journal keeps, by their tokens, and the number of its damaged records.
function TestJournal:keeps(text)
  lib.write(self.path, text)
  local found, kept = journal.read(self.path, { world_size = 2 }), {}
  for i, cell in ipairs(found.cells) do
    kept[i] = cell.cell.num_tokens
    lu.assertEquals({ cell.cell, cell.rows }, { cell_with(kept[i]), { row(cell_with(kept[i]), 1.25) } })
  end
  return kept, found.damaged
end

-- Each change is in the second of three records.
function TestJournal:test_a_damaged_record_loses_no_other()
  self:write(1, 4, 16)
  local text = lib.read(self.path)
  local second = text:find("cell", text:find("done", 1, true), true)
  for from, to in pairs { ["strategy=MPI "] = "strategy=SPI ", ["hidden_size=64"] = "hidden_size=-1",
    ["size=512"] = "size=513", ["time_us=1.2500"] = "time_us=1.2501", ["row "] = "row\0",
    ["\nrow "] = "\nrow  ", ["cell "] = "call ", ["\ndone "] = "\ndune ", ["\n"] = "" } do
    local at, stop = text:find(from, second, true)
    local kept, damaged = self:keeps(text:sub(1, at - 1) .. to .. text:sub(stop + 1))
    lu.assertEquals({ kept, damaged }, { { 1, 16 }, 1 }, from)
  end
end

-- Each change is in the second of three records, and its sum is right.
function TestJournal:test_a_record_with_values_that_no_sweep_writes_loses_no_other()
  self:write(1, 4, 16)
  local text = lib.read(self.path)
  local _, first = text:find("\ndone [^\n]*\n")
  local _, second = text:find("\ndone [^\n]*\n", first)
  local record = text:sub(first + 1, second):gsub("done [^\n]*\n$", "")
  for _, change in ipairs { { "op=allreduce", "op=bcast" }, { "dtype=bfloat16", "dtype=int8" },
    { "fusion=NONE", "fusion=SOME" }, { "mode=eager", "mode=eagre" },
    { "hidden_size=64", "hidden_size=0x40" }, { "hidden_size=64", "hidden_size=-64" },
    { "num_tokens=4", "num_tokens=99999999999" }, { "num_tokens=4", "num_tokens=4.0" },
    { "size=512", "size=511" }, { "size=512", "size=512 splits=x" }, { "launch=1", "launch=0" },
    { "launch=1", "launch=1e9" }, { "roundtrip_us=0.2500", "roundtrip_us=nan" },
    { "roundtrip_us=0.2500", "roundtrip_us=-1" }, { "strategy=MPI", "strategy=IPM" },
    { "strategy=TWOSHOT", "strategy=" }, { "strategy=TWOSHOT", "strategy=MPI" },
    { "samples=9", "samples=1e9" }, { "samples=9", "samples=4294967295" },
    { "time_us=1.2500", "time_us=1e-9" }, { "high_us=1.2500", "high_us=1e300" },
    { "bits=0b", "bits=00000000000000000b" }, { "accumulate=native", "accumulate=fp8" },
    { "placement=dedicated", "placement=?" }, { "none strategy", "some strategy" } } do
    local odd, count = record:gsub(change[1], change[2], 1)
    lu.assertEquals(count, 1, change[1])
    local with_sum = odd .. ("done sum=%s\n"):format(system.hash(odd))
    local kept, damaged = self:keeps(text:sub(1, first) .. with_sum .. text:sub(second + 1))
    lu.assertEquals({ kept, damaged }, { { 1, 16 }, 1 }, change[2])
  end
end

-- The bits are the same in each run.
function TestJournal:test_flipped_bits_lose_their_records_alone()
  local tokens = {}
  for i = 1, 300 do tokens[i] = i end
  self:write(table.unpack(tokens))
  local text = lib.read(self.path)
  local _, head = text:find("begin [^\n]*\n")
  local state, bytes = 1, { text:byte(1, -1) }
  for _ = 1, 200 do
    state = (state * 6364136223846793005 + 1442695040888963407) & math.maxinteger
    local at = head + 1 + (state >> 33) % (#bytes - head)
    bytes[at] = bytes[at] ~ 1 << (state >> 30 & 7)
  end
  for i, byte in ipairs(bytes) do bytes[i] = string.char(byte) end
  local kept, damaged = self:keeps(table.concat(bytes))
  lu.assertTrue(#kept >= 100 and #kept < 300, #kept)
  lu.assertTrue(damaged > 0 and damaged <= 200, damaged)
end

-- The time that a line takes grows with its length, not with the square of it.
function TestJournal:test_a_line_of_10_mb_is_one_damaged_record()
  self:write(1)
  local text = lib.read(self.path)
  for _, line in ipairs { ("x"):rep(1e7), ("row a=b "):rep(1250000) .. "\n" } do
    local kept, damaged = self:keeps(text .. line)
    lu.assertEquals({ kept, damaged }, { { 1 }, 1 })
  end
end

function TestJournal:test_a_damaged_head_and_earlier_versions_have_a_reason()
  self:write(1)
  local text = lib.read(self.path)
  for _, case in ipairs { { "f00d", "f00e", "its first lines are damaged" },
    { "version=3", "version=2", "it is of version 2, and not 3" },
    { "journal ", "?", "it does not begin as a journal" } } do
    lib.write(self.path, (text:gsub(case[1], case[2], 1)))
    lu.assertEquals({ journal.read(self.path, { world_size = 2 }) }, { nil, "not used, because " .. case[3] })
  end
end

function TestJournal:test_other_files_are_no_journal()
  lib.write(self.path, "world_size,dtype\n2,bfloat16\n")
  lu.assertNil(journal.read(self.path, { world_size = 2 }))
  lu.assertNil(journal.read(self.path .. ".missing", { world_size = 2 }))
end

-- system.lock's argument is the longest time to wait; the test need not wait.
function TestJournal:test_two_sweeps_do_not_write_one_journal()
  local first = begun(self.path, "f00d", false, false)
  local lock, waits_s = system.lock, nil
  local _ <close> = setmetatable({}, { __close = function() system.lock = lock end })
  function system.lock(handle, seconds)
    waits_s = seconds
    return lock(handle, 0.01)
  end
  lu.assertStrContains((failure(journal.open, self.path)), "another sweep")
  lu.assertTrue(waits_s >= 1, "ranks of a sweep that was killed hold its lock until they are gone")
  first:close()
end

function TestJournal:test_one_that_is_empty_gets_its_head()
  begun(self.path, "f00d", true, true):close()
  lu.assertEquals(journal.read(self.path, { world_size = 2 }),
    { fingerprint = "f00d", fresh = true, cells = {}, damaged = 0 })
end

-- Like a sweep that starts while another one ends: between opening and locking.
function TestJournal:test_a_removed_file_is_not_locked()
  local first = journal.open(self.path)
  local late <close> = io.open(self.path, "ab")
  lu.assertNil((system.lock(late)))
  first:remove()
  lu.assertNil((system.lock(late)))
  lu.assertFalse(file.exists(self.path))
end

return require "suites" { { "TestJournal", TestJournal } }
