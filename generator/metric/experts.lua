-- token_to_expert_assignment: the distribution of a mixture-of-experts model's tokens over its experts, from
-- gate logs (read by core.gates): over all, per step and per layer, as JSON; with --out also a picture. An
-- unusable log is an error, because a sum over the other logs would look like the sum of all.
local fail = require "base.fail"
local file = require "core.file"
local json = require "codec.json"
local fail_as_documented = require "serving.documented_failure"
local sequences = require "base.sequences"
local trace_dir = require "serving.trace_dir"

local experts = {}

local PICTURE = "token_to_expert_assignment.png"

-- ---- the files ------------------------------------------------------------------------------

-- The names in a folder, sorted; nil if `path` is not a folder. Raises if the folder cannot be read.
local function entries(path)
  local names, message = file.list(path)
  if names then return names end
  if message:find("Not a directory", 1, true) then return nil end
  fail.work("%s", message)
end

-- The folders in `dir` with names that match the pattern, sorted.
local function folders_in(dir, pattern)
  return sequences.filter(entries(dir) or {}, function(name)
    return name:find(pattern) and entries(dir .. "/" .. name)
  end)
end

-- Ends with an error in the form that other tools print for gate logs.
local function fail_with_json(text, dir, way_out, ...)
  fail_as_documented('{"error": ' .. json.encode(text .. dir) .. "}", way_out, ...)
end

-- The folder that contains gates_logs_*: `dir`, or the first folder in it, by name, with gates_logs in its
-- name. A note in `notes` names the folder that is taken.
local function find_folder(dir, notes)
  if #folders_in(dir, "^gates_logs_") > 0 then return dir end
  local found = folders_in(dir, "gates_logs")
  if #found == 0 then
    fail_with_json("Gates logs directory not found: ", dir, "%s: neither gates_logs_* nor a folder " ..
      "*gates_logs* in it; gates_logs_*/gate_logs_LAYER.json is required", dir)
  end
  if #found > 1 then
    notes[#notes + 1] = ("%s: takes %s of %s; --trace %s/%s takes the next"):format(dir, found[1],
      table.concat(found, ", "), dir, found[2])
  end
  return dir .. "/" .. found[1]
end

-- Layers by number; then names that are not numbers, as text.
local function layer_before(a, b)
  if math.type(a) ~= math.type(b) then return math.type(a) == "integer" end
  return a < b
end

-- The logs below `folder`: their paths, the layer of each, and all layers in order. Adds folders without logs
-- to `notes`.
local function find_logs(folder, notes)
  local paths, layer_of = {}, {}
  for _, name in ipairs(folders_in(folder, "^gates_logs_")) do
    local before = #paths
    for _, log in ipairs(entries(folder .. "/" .. name)) do
      local layer = log:match("^gate_logs_(.+)%.json$")
      if layer then
        layer = layer:find("^%d%d?%d?%d?%d?%d?$") and tonumber(layer) or layer
        paths[#paths + 1], layer_of[#paths + 1] = ("%s/%s/%s"):format(folder, name, log), layer
      end
    end
    if #paths == before then
      notes[#notes + 1] = ("%s/%s: has no gate_logs_*.json"):format(folder, name)
    end
  end
  local layers = sequences.distinct(layer_of)
  table.sort(layers, layer_before)
  return paths, layer_of, layers
end

local function parent_of(dir)
  local parent, last = dir:match("^(.*)/([^/]+)$")
  if (last or dir):find("^%.%.?$") then return dir .. "/.." end
  if not parent then return "." end
  return parent == "" and "/" or parent
end

-- Ends with an error unless the workload card has moe: true. The card is in `dir` or, if `dir` is a folder of
-- gate logs within a run, beside it.
local function check_card(dir)
  trace_dir.check(dir)
  local is_above = not trace_dir.find_card(dir) and trace_dir.find_card(parent_of(dir))
  local card, path = trace_dir.card(is_above and parent_of(dir) or dir, true)
  local moe = trace_dir.value(card, "workload", "model", "moe")
  if moe == true then return end
  fail_as_documented("Error: token_to_expert_assignment metric requires moe: true, found: " ..
    (type(moe) == "table" and "a list or mapping" or tostring(moe == nil and "none" or moe)),
    "%s: workload.model.moe: true is required, as in the card of a mixture-of-experts model", path)
end

-- ---- statistics -------------------------------------------------------------------------------

-- Statistics of the balance of loads per expert; nil if all are 0.
local function balance_of(loads)
  local total, idle, largest, smallest = 0.0, 0, 0.0, math.huge
  for _, load in ipairs(loads) do
    total = total + load
    largest = math.max(largest, load)
    if load > 0 then smallest = math.min(smallest, load) else idle = idle + 1 end
  end
  if total == 0 then return nil end
  local entropy, squares, shares, mean = 0.0, 0.0, {}, total / #loads
  for i, load in ipairs(loads) do
    shares[i] = load / total
    if load > 0 then entropy = entropy - shares[i] * math.log(shares[i], 2) end
    squares = squares + (load - mean) ^ 2
  end
  return { total = total, shares = shares, entropy = entropy, idle = idle,
    normalized_entropy = #loads > 1 and entropy / math.log(#loads, 2) or 0.0,
    variation = math.sqrt(squares / #loads) / mean, max_min_ratio = largest / smallest }
end

local function layer_row(layer, group)
  local balance = balance_of(group.totals)
  return json.object {
    { "layer", layer },
    { "steps", group.steps },
    { "coefficient_of_variation", balance and balance.variation or json.null },
    { "max_min_ratio", balance and balance.max_min_ratio or json.null },
    { "experts_without_load", balance and balance.idle or #group.totals },
    { "step_coefficient_of_variation", json.object {
      { "mean", balance and group.mean or json.null },
      { "max", balance and group.max or json.null } } },
  }
end

local function step_row(steps)
  return json.object {
    { "steps", steps.count },
    { "steps_without_load", steps.without_load },
    { "coefficient_of_variation", json.object {
      { "mean", steps.mean }, { "p50", steps.p50 }, { "p95", steps.p95 }, { "max", steps.max } } },
    { "experts_without_load", json.object { { "mean", steps.idle_mean }, { "max", steps.idle_max } } },
  }
end

-- The report as it is printed.
local function report_of(folder, logs, balance, layers, file_count)
  local rows = sequences.map(layers, function(layer, i) return layer_row(layer, logs.groups[i]) end)
  return json.object {
    { "totals", json.array(logs.totals) },
    { "normalized", json.array(balance.shares) },
    { "summary", json.object {
      { "entropy", balance.entropy },
      { "normalized_entropy", balance.normalized_entropy },
      { "coefficient_of_variation", balance.variation },
      { "max_min_ratio", balance.max_min_ratio },
      { "total_tokens", balance.total },
      { "num_experts", logs.experts },
      { "total_steps", logs.steps.count } } },
    { "experts_without_load", balance.idle },
    { "per_step", step_row(logs.steps) },
    { "per_layer", json.array(rows) },
    { "files", file_count },
    { "folder", folder },
  }
end

-- Reads the gate logs of a run. Returns the report as it is printed, the imbalance over the steps, { mean =
-- {...}, max = {...} }, and notes for the user. Wrong input raises.
function experts.read(dir)
  check_card(dir)
  local notes = {}
  local folder = find_folder(dir, notes)
  local paths, layer_of, layers = find_logs(folder, notes)
  if #paths == 0 then
    fail_with_json("No gate log data found in ", folder,
      "%s: no gates_logs_*/gate_logs_LAYER.json in it", folder)
  end
  local index_of, groups = {}, {}
  for i, layer in ipairs(layers) do index_of[layer] = i end
  for i, layer in ipairs(layer_of) do groups[i] = index_of[layer] end
  local logs = fail.unless_done(require("core.gates").read(paths, groups))
  local balance = balance_of(logs.totals)
  if not balance then
    fail_with_json("No gate log data found in ", folder,
      "%s: no expert has any load in its %d logs of %d steps", folder, #paths, logs.steps.count)
  end
  return report_of(folder, logs, balance, layers, #paths), logs.per_step, notes
end

-- ---- the picture ------------------------------------------------------------------------------

local MOST_POINTS = 2000 -- of a line: more than the picture's pixels
local MOST_TICKS = 6 -- of the steps' axis, so that their labels do not touch

-- The imbalance over the steps in at most MOST_POINTS points { step, mean, max } of equally many steps.
local function points_of(steps)
  local points, width = {}, math.ceil(#steps.mean / MOST_POINTS)
  for first = 1, #steps.mean, width do
    local last, sum, most, count = math.min(first + width - 1, #steps.mean), 0.0, 0.0, 0
    for i = first, last do
      if steps.mean[i] then
        sum, most, count = sum + steps.mean[i], math.max(most, steps.max[i]), count + 1
      end
    end
    if count > 0 then points[#points + 1] = { step = first, mean = sum / count, max = most } end
  end
  return points
end

-- The distance of ticks: 1, 2 or 5 times a power of ten, so that at most MOST_TICKS fit below `last`.
local function tick_distance(last)
  local power = 1
  while true do
    for _, step in ipairs { power, 2 * power, 5 * power } do
      if last / step <= MOST_TICKS then return step end
    end
    power = power * 10
  end
end

-- The unit of the drawn loads.
local function unit_of(largest)
  for _, unit in ipairs { { 1e9, "billions of tokens" }, { 1e6, "millions of tokens" },
    { 1e3, "thousands of tokens" } } do
    if largest >= 2 * unit[1] then return { size = unit[1], name = unit[2] } end
  end
  return { size = 1, name = "tokens" }
end

local function draw(report, steps, folder)
  local gnuplot, template = require "pages.gnuplot", require "codec.template"
  fail.unless_done(file.make_folder(folder))
  local largest = math.max(0.0, table.unpack(report.totals))
  local script = template.load(gentables.home .. "/templates/plots/expert_load.gp.tmpl") {
    gnuplot = gnuplot, report = report, points = points_of(steps), last_step = #steps.mean,
    largest = largest, unit = unit_of(largest), tick_distance = tick_distance }
  local path = folder .. "/" .. PICTURE
  fail.unless_done(gnuplot.draw(script, path))
  io.stderr:write(("wrote %s\n"):format(path))
end

-- ---- output -----------------------------------------------------------------------------------

local function print_table(reports)
  local words = "%12s %12s %12s %12s %12s %12s  %s\n"
  io.stdout:write(words:format("CV", "entropy/max", "max/min", "step CV mean", "step CV p95", "without load",
    "folder"))
  for _, report in ipairs(reports) do
    local summary, steps = report.summary, report.per_step.coefficient_of_variation
    local cells = { summary.coefficient_of_variation, summary.normalized_entropy, summary.max_min_ratio,
      steps.mean, steps.p95 }
    for i, cell in ipairs(cells) do cells[i] = ("%.6g"):format(cell) end
    cells[#cells + 1] = report.experts_without_load
    cells[#cells + 1] = report.folder
    io.stdout:write(words:format(table.unpack(cells)))
  end
end

function experts.run(args)
  if args.out and #args.trace > 1 then fail.input("a picture shows one run; give one --trace") end
  local reports, all_notes, steps = {}, {}, nil
  for i, dir in ipairs(args.trace) do
    local notes
    reports[i], steps, notes = experts.read((dir:gsub("(.)/+$", "%1")))
    table.move(notes, 1, #notes, #all_notes + 1, all_notes)
  end
  for _, note in ipairs(all_notes) do fail.note(note) end
  if args.out then draw(reports[1], steps, args.out) end
  if #reports > 1 and not args.json then return print_table(reports) end
  io.stdout:write(json.encode(#reports == 1 and reports[1] or json.array(reports)), "\n")
end

return experts
