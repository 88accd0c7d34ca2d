-- The serving runs in a folder of folders: the implementation and the settings of each, from its folder's
-- name or its workload card. metric/serving.lua reads their results.
--
--   for _, run in ipairs(run_finder.find("trace_collection")) do print(run.dir, run.label) end
local fail = require "base.fail"
local file = require "core.file"
local sequences = require "base.sequences"
local trace_dir = require "serving.trace_dir"

local run_finder = {}

run_finder.settings = { "max-num-seqs", "max-num-batched-tokens" }

-- Names in pictures, by the names in folders and workload cards; others keep their own name.
local labels = {
  baseline = "Baseline",
  defaultall2all = "DefaultAll2All",
  default_all_to_all = "DefaultAll2All",
}

-- Runs of the load balancer on and off belong to another comparison (communicationOverhead).
local left_out_by_name = { "_eplboff", "_eplbon" }

local function positive_integer(value)
  local number = math.tointeger(tonumber(value))
  return number and number > 0 and number or nil
end

-- The facts in a name such as Mixtral8x7B-vllmTP4-Perlmutter[baseline_32_8192]-group12; nil if it has none.
local function setting_of_name(name)
  local implementation, seqs, tokens = name:match("%[([^%[%]]+)_(%d+)_(%d+)%]")
  seqs, tokens = positive_integer(seqs), positive_integer(tokens)
  if not (seqs and tokens) then return nil end
  return { implementation = implementation, ["max-num-seqs"] = seqs, ["max-num-batched-tokens"] = tokens }
end

-- The facts in the workload card; nil, reason if it lacks a setting. Without experts in parallel it is the
-- baseline.
local function setting_of_card(card)
  local setting = {}
  for _, name in ipairs(run_finder.settings) do
    local value = trace_dir.value(card, "workload", "data", name)
    setting[name] = positive_integer(value)
    if not setting[name] then
      return nil, ("workload.data.%s of its card is %s"):format(name, value and "no count" or "missing")
    end
  end
  local mode = trace_dir.value(card, "Model-executor", "expert_parallel", "mode")
  setting.implementation = mode and tostring(mode) or "baseline"
  return setting
end

-- Further facts that distinguish two runs of one name: their place in the card, and their form in labels.
local circumstances = {
  { name = "model family", words = "%s", "workload", "model", "model_family" },
  { name = "precision", words = "%s", "workload", "model", "precision" },
  { name = "framework", words = "%s", "Model-executor", "framework", "name" },
  { name = "TP size", words = "TP %s", "Model-executor", "model_plan_parallelization", "tp" },
  { name = "EP size", words = "EP %s", "Model-executor", "model_plan_parallelization", "ep" },
  { name = "GPU", words = "%s", "workload", "hardware", "xpu_spec", "model" },
  { name = "number of GPUs", words = "%s GPUs", "workload", "hardware", "xpu_spec", "total_count" },
}

local function circumstances_of(card)
  local out = {}
  for _, row in ipairs(circumstances) do
    local value = trace_dir.value(card, table.unpack(row))
    if value ~= nil and value ~= "" and type(value) ~= "table" then
      out[row.name] = row.words:format(tostring(value))
    end
  end
  return out
end

local function is_left_out(name)
  return sequences.any(left_out_by_name, function(word) return name:find(word, 1, true) end)
end

local function is_plain_file(message) return message:find("Not a directory", 1, true) ~= nil end

-- The run in the folder `name` of `traces`; nil, reason if it is not a run. Raises if a run cannot be read.
local function find_run(traces, name)
  local dir = traces .. "/" .. name
  local setting = setting_of_name(name)
  local names, message = file.list(dir)
  if not names then
    if is_plain_file(message) then return nil end
    if setting then fail.work("%s", message) end
    return nil, "cannot be read"
  end
  if is_left_out(name) then return nil, "load balancer on or off" end
  if not setting and not file.exists(dir .. "/results_json") then return nil, "not a serving run" end
  local card, reason = trace_dir.card(dir)
  if not setting then setting, reason = setting_of_card(card) end
  if not setting then return nil, reason end
  setting.label = labels[setting.implementation:lower()] or setting.implementation
  setting.dir, setting.circumstances = dir, circumstances_of(card)
  return setting
end

-- Prints one line on stderr: the folders that are left out, and the reason.
function run_finder.print_left_out(reason, names)
  local MOST_NAMES = 4
  local some = table.concat(names, ", ", 1, math.min(#names, MOST_NAMES))
  if #names > MOST_NAMES then some = some .. (" and %d more"):format(#names - MOST_NAMES) end
  fail.note("left out, %s: %s", reason, (some:gsub("%c", "?")))
end

-- The circumstances in which runs of this label are known to differ.
local function differing(found, label)
  local out = {}
  for _, row in ipairs(circumstances) do
    local known, differs
    for _, run in ipairs(found) do
      local value = run.label == label and run.circumstances[row.name] or nil
      differs = differs or (known and value and known ~= value)
      known = known or value
    end
    if differs then out[#out + 1] = row.name end
  end
  return out
end

-- Sets run.line, the name of a run's implementation: its label. Runs with one label under different
-- circumstances are different implementations, with different names.
function run_finder.name_lines(found)
  local differing_of = {}
  for _, run in ipairs(found) do
    differing_of[run.label] = differing_of[run.label] or differing(found, run.label)
    local words = sequences.map(differing_of[run.label], function(name)
      return run.circumstances[name] or name .. " unknown"
    end)
    run.line = #words == 0 and run.label or ("%s (%s)"):format(run.label, table.concat(words, ", "))
  end
end

-- All runs in `traces`, in the order of their names: { dir, label, circumstances, ["max-num-seqs"],
-- ["max-num-batched-tokens"] }. Prints the folders that are left out on stderr. Raises if a run cannot be
-- read.
function run_finder.find(traces)
  trace_dir.check(traces)
  local found, left_out, of_reason = {}, {}, {}
  for _, name in ipairs(fail.unless(file.list(traces))) do
    local run, reason = find_run(traces, name)
    if run then found[#found + 1] = run end
    if reason then
      table.insert(sequences.entry(left_out, of_reason, reason, function() return { why = reason } end), name)
    end
  end
  for _, names in ipairs(left_out) do run_finder.print_left_out(names.why, names) end
  return found
end

return run_finder
