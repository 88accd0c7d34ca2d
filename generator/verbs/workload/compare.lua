-- gentables workload compare: sweeps side by side in one page: steps of each configuration, their differences
-- beyond noise, then the same comparison of their traces as trace compare makes. The first is the base.
local report_page = require "trace.compare.report_page"
local configurations = require "trace.runs.configurations"
local fail = require "base.fail"
local file = require "core.file"
local json = require "codec.json"
local page = require "pages.page"
local sequences = require "base.sequences"
local side_by_side = require "pages.side_by_side"
local sources = require "trace.compare.sources"
local store = require "workload.store"
local findings = require "workload.findings"

-- The configurations of any sweep, in order: { name, threads, channels, [i] = the i-th sweep's result }.
local function results_of(sweeps)
  local lists = sequences.map(sweeps, function(sweep) return sweep:measured() end)
  local list = configurations.of(lists)
  for _, one in ipairs(list) do
    one.name = findings.name(one)
    for i = 1, #sweeps do one[i] = one[i] and one[i].result end
  end
  return list
end

-- Adds the reason for each configuration that one sweep has and another lacks.
local function add_missing(out, sweeps, names)
  local lists = sequences.field(sweeps, "entries")
  for _, one in ipairs(configurations.of(lists)) do
    for i = 1, #sweeps do
      local why = not one[i] and "not measured" or not one[i].result and one[i].reason
      if why then out:missing(("%s, %s: %s"):format(names[i], findings.name(one), why)) end
    end
  end
end

-- Whether GEMMs alone are comparable in both: the same GEMMs, computed by the same library and machine.
local function controlled(sweeps, i)
  local a, b = sweeps[1], sweeps[i]
  local x, y = a:measured()[1], b:measured()[1]
  return a.settings.workload == b.settings.workload and a.settings.backend == b.settings.backend
    and a.settings.ranks == b.settings.ranks and x and y and #store.machines_differ(x.result, y.result) == 0
end

local function percent_of(a, b) return 100 * (b.median / a.median - 1) end

-- One sentence for each other sweep. `control`: whether GEMMs alone are comparable in it.
local function sentence(results, names, i, control)
  local counts, compared, worst = { shorter = 0, longer = 0, changed = 0, few = 0, meet = 0 }, 0, nil
  for _, one in ipairs(results) do
    if one[1] and one[i] then
      local a, b = one[1].times.overlapped, one[i].times.overlapped
      local what, why = findings.verdict(one[1], one[i], "overlapped", control)
      compared = compared + 1
      if why then counts[why] = counts[why] + 1 end
      if what then
        counts[what] = counts[what] + 1
        if not worst or math.abs(percent_of(a, b)) > math.abs(worst[2]) then
          worst = { one.name, percent_of(a, b) }
        end
      end
    end
  end
  if compared == 0 then return ("%s and %s have no configuration in common."):format(names[1], names[i]) end
  local few = ("The difference of overlapped steps of %d is %s."):format(counts.few, findings.FEW)
  local common = ("%s and %s have %d configuration%s in common."):format(names[1], names[i], compared,
    compared == 1 and "" or "s")
  if counts.few == compared then return common .. " " .. few end
  local text = ("%s In %d of them the overlapped step of %s is surely shorter, in %d surely longer"):format(
    common, counts.shorter, names[i], counts.longer)
  if control then
    text = ("%s; in %d the machine changed between launches, as GEMMs alone show"):format(text,
      counts.changed)
  end
  if counts.meet > 0 then
    text = ("%s; in %d the intervals overlap%s"):format(text, counts.meet,
      control and ", within the difference of GEMMs alone" or "")
  end
  text = text .. "."
  if not control then
    text = text .. " GEMMs alone are not comparable in both, so a change of the machine between launches"
      .. " cannot be detected."
  end
  if counts.few > 0 then text = text .. " " .. few end
  return worst and text .. (" The largest difference: %s, %+.1f %%."):format(worst[1], worst[2]) or text
end

local KINDS = { { "gemms", "GEMMs alone" }, { "serial", "serial" }, { "overlapped", "overlapped" } }

local CLASSES = { shorter = "better", longer = "worse" }

local NOT_SURE = { changed = " (uncertain: the machine changed)", meet = " (uncertain)",
  few = (" (%s)"):format(findings.FEW) }

-- controls[i]: whether GEMMs alone are comparable in sweep i and the first; `length`: of the unit, in us.
local function row_of(one, kind, count, controls, length)
  local function time_of(i) return one[i] and one[i].times[kind[1]] end
  return side_by_side.row({ one.threads, one.channels, kind[2] }, count, function(i)
    local time = time_of(i)
    return time and time.median / length or nil, time and findings.interval(time, 1 / length, "%.2f") or nil
  end, function(i)
    local a, b = time_of(1), time_of(i)
    if not a or not b then return nil end
    local what, why = findings.verdict(one[1], one[i], kind[1], kind[1] ~= "gemms" and controls[i])
    local cell = side_by_side.change(a.median, b.median, 0)
    cell.text, cell.class = cell.text .. (what and "" or NOT_SURE[why]), CLASSES[what or "unsure"]
    return cell
  end)
end

-- Columns of a median in this format and its interval for each sweep; `against`: of changes, too.
local function columns_of(heads, names, format, against)
  return side_by_side.row(heads, #names, function(i)
    return { title = names[i], format = format }, names[i] .. ": interval"
  end, against and function(i) return side_by_side.against(names, i) end)
end

local function add_steps(out, results, names, controls)
  local rows, all = {}, {}
  for _, one in ipairs(results) do
    for i = 1, #names do all[#all + 1] = one[i] end
  end
  local unit, length = findings.unit_of(all)
  for _, one in ipairs(results) do
    for _, kind in ipairs(KINDS) do rows[#rows + 1] = row_of(one, kind, #names, controls, length) end
  end
  out:section("Steps", { note = unit .. ", medians with " .. findings.INTERVALS
    .. "; if those of two sweeps overlap, a difference is uncertain. " .. findings.LAUNCHES })
  out:table { columns = columns_of({ "threads", "channels", "step" }, names, "%.2f", true), rows = rows }
end

local function add_hidden(out, results, names)
  local rows = sequences.map(results, function(one)
    return side_by_side.row({ one.threads, one.channels }, #names, function(i)
      local hides = one[i] and findings.has_hidden(one[i]) and one[i].ratios.hidden
      return hides and 100 * hides.median or nil, hides and findings.interval(hides, 100, "%.0f") or nil
    end)
  end)
  out:section("Hidden communication", { note = "% of the collectives' addition to a step; empty if it is"
    .. " within noise, or if numbers contradict each other" })
  out:table { columns = columns_of({ "threads", "channels" }, names, "%.0f"), rows = rows }
end

local SETTINGS = { { "name", "workload" }, { "ranks", "ranks" }, { "backend", "backend" },
  { "transport", "transport" }, { "wait", "waiting" }, { "steps", "steps" }, { "warm_up", "warm-up steps" } }
-- Fields that are hashes; the page shows their meaning instead.
local HASHES = { { "workload", "the work of a step, or its sizes" }, { "program", "gentables-workload" } }

-- { { what, the first's, sweep's }... }: differences of settings and machines.
local function differences(first, sweep)
  local x, y = first:measured()[1], sweep:measured()[1]
  local out = sequences.map(SETTINGS, function(row)
    local a, b = first.settings[row[1]], sweep.settings[row[1]]
    return a ~= b and { row[2], a, b } or nil
  end)
  return x and y and sequences.append(out, store.machines_differ(x.result, y.result)) or out
end

local function add_differences(out, sweeps, names)
  for i = 2, #sweeps do
    for _, one in ipairs(differences(sweeps[1], sweeps[i])) do
      out:note(("%s and %s differ in their %s: %s, %s"):format(names[1], names[i], table.unpack(one)))
    end
  end
  for _, row in ipairs(HASHES) do
    for i = 2, #sweeps do
      if sweeps[1].settings[row[1]] ~= sweeps[i].settings[row[1]] then
        out:note(("%s and %s differ: %s"):format(names[1], names[i], row[2]))
      end
    end
  end
end

local function add_all(out, sweeps, names)
  local results, controls = results_of(sweeps), {}
  out:section("Findings")
  for i = 2, #sweeps do
    controls[i] = controlled(sweeps, i)
    out:text(sentence(results, names, i, controls[i]))
  end
  add_differences(out, sweeps, names)
  add_missing(out, sweeps, names)
  add_steps(out, results, names, controls)
  add_hidden(out, results, names)
end

-- ---- as JSON -----------------------------------------------------------------------------------

-- The times of a sweep's result; null without one.
local function json_times(result)
  local out = {}
  for _, kind in ipairs(result and KINDS or {}) do
    local time = result.times[kind[1]]
    out[kind[1]] = time and { median_us = time.median, low_us = time.low, high_us = time.high,
      samples = time.samples }
  end
  return result and out or json.null
end

-- The verdict on the overlapped steps of a configuration in sweep i, against the first; or why there is none.
local function json_verdict(one, i, control)
  if not (one[1] and one[i]) then return json.null end
  local what, why = findings.verdict(one[1], one[i], "overlapped", control)
  return what or why
end

local function answer(sweeps, names)
  local results, sentences, controls = results_of(sweeps), {}, {}
  for i = 2, #sweeps do
    controls[i] = controlled(sweeps, i)
    sentences[i - 1] = sentence(results, names, i, controls[i])
  end
  return { sweeps = json.array(names), findings = json.array(sentences),
    configurations = json.array(sequences.map(results, function(one)
      local times, verdicts = {}, {}
      for i = 1, #sweeps do
        times[i], verdicts[i] = json_times(one[i]), i == 1 and json.null or json_verdict(one, i, controls[i])
      end
      return { threads = one.threads, channels = one.channels, times = json.array(times),
        overlapped_against_first = json.array(verdicts) }
    end)) }
end

-- ---- the command -------------------------------------------------------------------------------

-- The analyses of all sweeps; or nil and the reason, if one has none.
local function analyses_of(sweeps)
  local lacks = sequences.find(sweeps, function(sweep)
    return file.status(sweep.folder .. "/tracelens_analysis") ~= "folder"
  end)
  if lacks then return nil, lacks.folder .. ": not analysed yet; run gentables workload report first" end
  return sequences.map(sweeps, function(sweep) return sources.find(sweep.folder) end)
end

return {
  summary = "Compares sweeps in one page: their steps, the hidden time, and their traces.",
  positional = { name = "A B...", min = 2, max = math.huge, help = "sweeps; the first is the base" },
  options = {
    { name = "out", short = "o", value = "FILE.html", default = "sweep_comparison.html",
      help = "path of the page" },
    { name = "label", value = "L", many = true,
      help = "the name of a sweep; once for each, in their order" },
    { name = "json", help = "print the steps as JSON, and make no page" },
  },
  example = "gentables workload pipeline -f small -p 2 -c 1,2 -t 1 -o experiments/a\n"
    .. "  gentables workload pipeline -f small -p 2 -c 1,2 -t 1 -o experiments/b\n"
    .. "  gentables workload compare experiments/a experiments/b --label a --label b",
  run = function(args)
    local sweeps = {}
    for i, folder in ipairs(args) do
      sweeps[i] = store.read(folder)
      sweeps[i].path, sweeps[i].label = sweeps[i].folder, sweeps[i].folder:match("[^/]*$")
    end
    local names = side_by_side.labels(sweeps, args.label)
    if args.json then
      print(json.encode(answer(sweeps, names)))
      return
    end
    local analyses, why = analyses_of(sweeps)
    local out
    if analyses then
      out = report_page.of_sweeps(analyses, names, function(begun) add_all(begun, sweeps, names) end)
    else
      out = page.new("Comparison of sweeps: " .. table.concat(names, ", "))
      add_all(out, sweeps, names)
      out:missing(why)
    end
    fail.unless_done(out:write(args.out))
    print("written   " .. args.out)
  end,
}
