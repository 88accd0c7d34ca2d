-- One serving metric of one run: a key of its result files (TTFT, TPOT, ITL, throughputs), as the mean over
-- these files.
local fail = require "base.fail"
local file = require "core.file"
local json = require "codec.json"
local fail_as_documented = require "serving.documented_failure"
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

-- The value of the key in one file: a finite number, or nil where the file has no such key.
local function value_in(path, key)
  local text = fail.unless_done(file.read(path))
  local picked, problem = json.pick(text, key)
  if not picked then fail.work("%s: not a result file: %s", path, problem) end
  local value = picked[key]
  if value == nil then return nil end
  if type(value) ~= "number" then
    fail.work("%s: %s is %s; a number is required", path, key, value == json.null and "null" or
      ("of type " .. (type(value) == "table" and "list or object" or type(value))))
  end
  if not (value >= 0 and value < math.huge) then
    fail.work("%s: %s is %g; a number of at least 0 is required", path, key, value)
  end
  return value + 0.0
end

-- Reads a metric of one run: { folder, count, mean, median, min, max, standard_deviation, files }. Skips
-- files without the key and prints their number on stderr. Raises if no file has the key, and for wrong
-- input.
function result.read(dir, row)
  check_phase(dir, row)
  local values, files = {}, {}
  local paths = trace_dir.results(dir)
  for _, path in ipairs(paths) do
    local value = value_in(path, row.key)
    if value then
      values[#values + 1] = value
      files[#files + 1] = path
    end
  end
  if #values == 0 then
    fail.work("%s/results_json: none of its %d files has %s, from which %s is computed", dir, #paths, row.key,
      row.name)
  end
  if #values < #paths then
    fail.note("%s/results_json: %d of %d files have no %s; left out", dir, #paths - #values, #paths,
      row.key)
  end
  local run = statistics.summarise(values)
  run.folder, run.files = dir, json.array(files)
  return run
end

return result
