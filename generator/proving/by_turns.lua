-- The time of a command with a file and without it, by turns: a turn launches both, and every second turn in
-- the other order. A launch's time is from MPI_Init to MPI_Finalize of its slowest rank. The result is the
-- median over turns of the time with the file by that without, and the 95 % interval of the median.
local fail = require "base.fail"
local progress = require "system.progress"
local sequences = require "base.sequences"
local statistics = require "base.statistics"
local verdict = require "proving.verdict"
local watched_run = require "proving.watched_run"

local by_turns = {}

-- Turns: the least number for an interval of 95 %, and one of which the interval excludes an outlier.
by_turns.LEAST, by_turns.USUAL = 6, 12

local function launch_with(command, of, seconds)
  local run = watched_run.run(command, { environment = of.environment, files = of.files, seconds = seconds })
  verdict.check_read(of, run)
  return run
end

local function launch_without(command, of, seconds)
  local run = watched_run.run(command, { environment = {}, files = of.files, seconds = seconds })
  if verdict.is_read(run) then
    fail.input("%s: is also read without prove; remove it from the command and from the environment", of.path)
  end
  return run
end

-- Launches `turns` turns; `of`: asked.read's. Returns { with, without = seconds by turn, ratio, low, high,
-- last = the last run with the file, is_slower, is_faster }.
function by_turns.measure(command, of, turns, seconds)
  local bar = progress.new(2 * turns)
  bar:in_lines()
  local result = { with = {}, without = {} }
  local function launch(key, turn)
    bar:show(("%s the file, turn %d of %d"):format(key, turn, turns))
    local run = (key == "with" and launch_with or launch_without)(command, of, seconds)
    result[key][turn] = run.seconds
    if key == "with" then result.last = run end
    bar:step()
  end
  for turn = 1, turns do
    launch(turn % 2 == 1 and "with" or "without", turn)
    launch(turn % 2 == 1 and "without" or "with", turn)
  end
  bar:clear()
  local ratios = sequences.map(result.with, function(with, turn) return with / result.without[turn] end)
  result.ratio = statistics.median(ratios)
  result.low, result.high = statistics.median_interval(ratios)
  result.is_slower, result.is_faster = result.low > 1, result.high < 1
  return result
end

-- Prints a result.
function by_turns.print(of, result)
  print(("%s, %s, %d turns"):format(of.path, verdict.library(result.last), #result.with))
  for _, key in ipairs { "with", "without" } do
    print(("%-8s %.6f s from MPI_Init to MPI_Finalize (median)"):format(key, statistics.median(result[key])))
  end
  local word = result.is_slower and "slower with the file" or result.is_faster and "faster with the file"
    or "no difference is shown"
  local ratio = "ratio    %.4f (95 %% interval %.4f to %.4f): %s"
  print(ratio:format(result.ratio, result.low, result.high, word))
end

return by_turns
