-- GENTABLES_PROGRESS: the long verbs write lines of JSON. At a steady rate of stand-in programs
-- (lib_steady.lua), the part that is done never goes back, ends at 1, and the time left is right within a
-- factor of two.
local benches = require "fuzz.structure.benches"
local file = require "core.file"
local json = require "codec.json"
local lib = require "unit.sweep.lib"
local lu = require "luaunit"
local replay = require "unit.replay.lib"

local STEPS = 40
local steady = debug.getinfo(1, "S").source:match("^@(.*/)") .. "lib_steady.lua"

local TestProgress = lib.with_folder(lib.scratch, "/tmp")

local function program(path, text)
  lib.write(path, text)
  assert(os.execute(("chmod +x '%s'"):format(path)))
  return path
end

-- Runs a verb with a program that sends `kind` at a steady rate; returns the lines of its progress.
function TestProgress:lines_of(kind, ...)
  local path = self.folder .. "/progress"
  lib.ends(0, "", lib.run({ lib.gentables, "lua", steady, kind, ... }, { "GENTABLES_PROGRESS=" .. path }))
  local lines = {}
  for line in lib.read(path):gmatch("[^\n]+") do lines[#lines + 1] = assert(json.decode(line)) end
  lu.assertTrue(#lines >= STEPS // 2, lib.read(path))
  return lines
end

-- Expects progress that never goes back, and a right time left from a fifth of the work on.
function TestProgress.is_right(lines)
  local last, before, judged = lines[#lines], 0, 0
  lu.assertEquals(lines[1].part, 0)
  lu.assertEquals(last.part, 1)
  for _, line in ipairs(lines) do
    lu.assertTrue(line.part >= before, "it goes back to " .. line.part)
    before = line.part
    local rest = last.elapsed_s - line.elapsed_s
    if line.part >= 0.2 and rest > 2 then
      local factor = line.left_s / rest
      lu.assertTrue(factor > 0.5 and factor < 2,
        ("%g s left, not %g: %s"):format(line.left_s, rest, line.text))
      judged = judged + 1
    end
  end
  lu.assertTrue(judged >= 5, judged .. " lines were judged")
end

-- `count` lines of progress.
local function lines_of_progress(count)
  local lines = {}
  for i = 1, count do lines[i] = ("progress done=%d of=%d"):format(i, count) end
  return table.concat(lines, "\n")
end

-- Writes the files of the fuzzer's job `name` to the folder, with more lines of progress in the program's
-- answers. Returns its program.
function TestProgress:honest(name)
  assert(file.make_folder(self.folder .. "/in/bench"))
  for _, job in ipairs(benches) do
    for path, text in pairs(job[1] == name and job.files or {}) do
      lib.write(self.folder .. "/" .. path, (text:gsub("progress.* of=2", lines_of_progress(STEPS))))
    end
  end
  os.execute(("chmod +x '%s'/in/bench/*"):format(self.folder))
  return self.folder .. "/in/bench/program"
end

function TestProgress:test_sweep()
  lib.write(self.folder .. "/spec.lua", [[
    return { arch = "host", tp = { 2, 4 }, hidden_sizes = { 64, 128 }, num_tokens = { 1, 2, 4, 8 },
      strategies = { "MPI", "ONESHOT" }, limits = { launches = 3, cell_us = 1000000 } }]])
  self.is_right(self:lines_of("done", table.unpack(lib.sweep_command(self.folder, "--budget", "none"), 2)))
end

-- Four ranks take eight times as long as two, which is known from their own table on.
function TestProgress:test_sweep_that_slows_down()
  lib.write(self.folder .. "/spec.lua", [[
    return { arch = "host", tp = { 2, 4 }, hidden_sizes = { 64 }, num_tokens = { 4, 8, 16, 32 },
      strategies = { "MPI", "ONESHOT", "TWOSHOT" }, limits = { cell_us = 8000000 } }]])
  local lines = self:lines_of("done=8", table.unpack(lib.sweep_command(self.folder, "--budget", "none"), 2))
  local last, judged, began_s = lines[#lines], 0, nil
  lu.assertEquals(last.part, 1)
  for _, line in ipairs(lines) do
    began_s = began_s or line.text:find("^TP 4") and line.elapsed_s
    local rest = last.elapsed_s - line.elapsed_s
    if began_s and rest > 0 and rest < 0.48 * (last.elapsed_s - began_s) then
      local factor = line.left_s / rest
      lu.assertTrue(factor > 0.5 and factor < 2, ("%g s left, not %g"):format(line.left_s, rest))
      judged = judged + 1
    end
  end
  lu.assertTrue(judged >= 5, judged .. " lines were judged")
end

function TestProgress:test_tune()
  self.is_right(self:lines_of("progress", "tune", "--op", "allreduce", "--sizes", "1K,2K", "--tp", "2,4",
    "--launches", "2", "--bench", self:honest "tune", "--launcher", "env RANKS={ranks}", "--fresh", "--cache",
    self.folder .. "/cache.json"))
end

function TestProgress:test_workload()
  local common = { "-f", self.folder .. "/in/w.lua", "-p", "2", "-t", "1", "--backend", "host", "--program",
    self:honest "workload run", "--launcher", "env RANKS={ranks}", "-c" }
  local function with(command, ...)
    return "workload", command, table.unpack(table.move({ ... }, 1, select("#", ...), #common + 1,
      table.move(common, 1, #common, 1, {})))
  end
  self.is_right(self:lines_of("progress", with("run", "2")))
  os.remove(self.folder .. "/progress")
  self.is_right(self:lines_of("progress", with("sweep", "2,3", "-o", self.folder .. "/sweep")))
end

function TestProgress:test_replay()
  local trace = replay.trace()
  for i = 1, STEPS do trace:run("aten::mm", 1000 - i, replay.mm(32, 24, 16 * i)) end
  local answering = program(self.folder .. "/replay", "#!/bin/sh\n" .. replay.serving [[
    echo "replayed id=x by=b computed=float32 kernel=k" \
      "warm_mean_us=1 warm_median_us=1 warm_low_us=1 warm_high_us=1 warm_samples=5" \
      "cold_mean_us=2 cold_median_us=2 cold_low_us=2 cold_high_us=2 cold_samples=5 note="]])
  self.is_right(self:lines_of("replayed", "replay", replay.save(trace, "t.json"), "--csv", "--out",
    self.folder .. "/out", "--program", answering))
end

-- A file that cannot be written is wrong use; - is stderr.
function TestProgress:test_places()
  local argv = { lib.gentables, "sweep", "--out", self.folder, "--bench", lib.stand_in, "--launcher",
    "env RANKS={ranks}", "--exhaustive" }
  lib.write(self.folder .. "/spec.lua", 'return { arch = "host", tp = { 2 }, hidden_sizes = { 64 }, '
    .. 'num_tokens = { 1 }, strategies = { "MPI" }, limits = { launches = 1 } }')
  lib.ends(2, "GENTABLES_PROGRESS: /nowhere/x: No such file",
    lib.run(argv, { "GENTABLES_PROGRESS=/nowhere/x" }))
  local _, errors = lib.ends(0, "", lib.run(argv, { "GENTABLES_PROGRESS=-" }))
  for line in errors:gmatch("[^\n]+") do lu.assertNotNil(json.decode(line), line) end
  lu.assertStrContains(errors, '"part": 1.0000')
end

return require "suites" { { "TestProgress", TestProgress } }
