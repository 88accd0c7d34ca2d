-- The folder of a serving run: its workload card (*.yaml, *.yml) and its result files. Reads and checks them;
-- the files of the metrics compute from them.
local fail = require "base.fail"
local file = require "core.file"
local json = require "codec.json"
local optional = require "base.optional"
local fail_as_documented = require "serving.documented_failure"
local sequences = require "base.sequences"

local trace_dir = {}

-- The names in `dir` that match one of the patterns, sorted.
local function names_in(dir, ...)
  local patterns = { ... }
  return sequences.filter(fail.unless(file.list(dir)), function(name)
    return sequences.any(patterns, function(pattern) return name:find(pattern) end)
  end)
end

local function is_folder(path) return file.list(path) ~= nil end

-- Ends with the documented error if `dir` is not a folder.
function trace_dir.check(dir)
  if is_folder(dir) then return end
  fail_as_documented("Error: Trace directory not found: " .. dir, "%s: %s; give the folder of a run", dir,
    file.exists(dir) and "is not a folder, or cannot be read" or "does not exist")
end

-- The path of the workload card in `dir`; nil if there is none. Several are an error.
function trace_dir.find_card(dir)
  local cards = names_in(dir, "^[^.].*%.yaml$", "^[^.].*%.yml$")
  if #cards > 1 then
    fail.work("%s: several workload cards: %s; one is required", dir, table.concat(cards, ", "))
  end
  return cards[1] and dir .. "/" .. cards[1]
end

-- The workload card as a table; ends with the documented error if it is not a mapping.
function trace_dir.read_card(path)
  local yaml = optional "core.yaml"
  if not yaml then fail.work("%s: built without libyaml (Debian: libyaml-dev)", path) end
  local card, message = yaml.decode(fail.unless(file.read(path)), json.null)
  if type(card) == "table" and card ~= json.null and #card == 0 then return card end
  fail_as_documented("Error: Invalid workload YAML format", "%s: %s", path,
    message or "is not a mapping; a mapping that begins with workload: is required")
end

-- The workload card of a run; ends with the documented error if there is none. of_gates: for its gate logs.
function trace_dir.card(dir, of_gates)
  trace_dir.check(dir)
  local path = trace_dir.find_card(dir)
  if not path then
    fail_as_documented("Error: No workload YAML file found in trace directory",
      "%s: has no *.yaml or *.yml with workload: { model: { phase: inference%s } }, as the card of a run%s",
      dir, of_gates and ", moe: true" or "",
      of_gates and "" or "; result files need none: give them, or their folder")
  end
  return trace_dir.read_card(path), path
end

-- The result files of a run without a card, in name order: `path` itself, if it is a file, or the *.json and
-- *.jsonl in the folder; nil: it is a run's folder, or has none.
function trace_dir.results_without_card(path)
  if not is_folder(path) then return file.exists(path) and { path } or nil end
  if #names_in(path, "%.yaml$", "%.yml$") > 0 then return nil end
  local names = names_in(path, "^[^.].*%.json$", "^[^.].*%.jsonl$")
  return #names > 0 and sequences.map(names, function(name) return path .. "/" .. name end) or nil
end

-- The value of the card at these nested keys; nil if a key is missing.
function trace_dir.value(card, ...)
  local value = card
  for _, key in ipairs { ... } do
    if type(value) ~= "table" then return nil end
    value = value[key]
  end
  if value == json.null then return nil end
  return value
end

-- The result files of a run, in name order; ends with the documented error if there are none.
function trace_dir.results(dir)
  local folder = dir .. "/results_json"
  if not is_folder(folder) then
    fail_as_documented("Error: results_json directory not found", "%s: is not a folder, or cannot be read",
      folder)
  end
  local names = names_in(folder, "^[^.].*%.json$")
  local paths = sequences.map(names, function(name) return folder .. "/" .. name end)
  if #paths == 0 then fail.work("%s: has no *.json, as a serving benchmark writes them", folder) end
  return paths
end

return trace_dir
