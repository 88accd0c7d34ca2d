-- One serving metric of one run: a key of its result files (TTFT, TPOT, ITL, throughputs), as the mean over
-- these files.
local fail = require "base.fail"
local file = require "core.file"
local json = require "codec.json"
local fail_as_documented = require "serving.documented_failure"
local sequences = require "base.sequences"
local statistics = require "base.statistics"
local trace_dir = require "serving.trace_dir"

local result = {}

local function check_phase(dir, row)
  local card, path = trace_dir.card(dir)
  local phase = trace_dir.value(card, "workload", "model", "phase")
  if phase == "inference" then return end
  local words = "Error: %s metric requires inference phase, found: %s"
  fail_as_documented(words:format(row.label, tostring(phase or "none")),
    "%s: workload.model.phase: inference is required", path)
end

-- The values of the key in a result: nothing if it lacks the key, else one number.
local function add_value(values, text, key, where)
  local picked, problem = json.pick(text, key)
  if not picked then fail.work("%s: not a result file: %s", where, problem) end
  local value = picked[key]
  if value == nil then return end
  if type(value) ~= "number" then
    fail.work("%s: %s is %s; a number is required", where, key, value == json.null and "null or not finite" or
      ("of type " .. (type(value) == "table" and "list or object" or type(value))))
  end
  if not (value >= 0 and value < math.huge) then
    fail.work("%s: %s is %g; a number of at least 0 is required", where, key, value)
  end
  values[#values + 1] = value + 0.0
end

-- The values of the key in one file, of one result, or of a result in each line.
local function values_in(path, key)
  local text, values = fail.unless_done(file.read(path)), {}
  if not text:find("^%s*{[^\n]*}%s*\n%s*{") then
    add_value(values, text, key, path)
    return values
  end
  local number = 0
  for line in (text .. "\n"):gmatch("(.-)\n") do
    number = number + 1
    if line:find("%S") then add_value(values, line, key, ("%s:%d"):format(path, number)) end
  end
  return values
end

-- Reads a metric of one run: { folder, count, mean, median, min, max, standard_deviation, files }. `dir` is
-- the run's folder, with its card, or a folder of result files, or one of these. Skips files without the key
-- and prints their number on stderr. Raises if no file has the key, and for wrong input.
function result.read(dir, row)
  local paths = trace_dir.results_without_card(dir)
  local where = paths and dir or dir .. "/results_json"
  if not paths then
    check_phase(dir, row)
    paths = trace_dir.results(dir)
  end
  local values, files = {}, {}
  for _, path in ipairs(paths) do
    local found = values_in(path, row.key)
    sequences.append(values, found)
    if #found > 0 then files[#files + 1] = path end
  end
  if #values == 0 then
    fail.work("%s: none of its %d files has %s, from which %s is computed", where, #paths, row.key, row.name)
  end
  if #files < #paths then
    fail.note("%s: %d of %d files have no %s; left out", where, #paths - #files, #paths, row.key)
  end
  local run = statistics.summarise(values)
  run.folder, run.files = dir, json.array(files)
  return run
end

return result
