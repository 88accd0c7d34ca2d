-- gentables metric: numbers of serving runs, gate logs, kernel summaries and profiler files. metric/list.lua
-- lists the metrics; each has a file of its own.
local example_of = require("trace.runs.example").of
local fail = require "base.fail"
local json = require "codec.json"
local list = require "metric.list"
local collective = require "profile.collective"
local fail_as_documented = require "serving.documented_failure"
local sequences = require "base.sequences"
local text = require "base.text"

-- The documented folders of `metric plot`.
local TRACES, GRAPHS = "trace_collection", "graphs"

-- The options that each kind of metric requires, and the documented line for their absence.
local needs = {
  trace = { options = { "trace" }, line = "Error: --trace argument required for metric: %s" },
  activity = { options = { "trace" }, line = "Error: --trace argument required for metric: %s" },
  summaries = { options = { "csv1", "csv2" },
    line = "Error: %s metric requires --csv1 and --csv2 arguments" },
}

local function print_list(is_json)
  if is_json then
    local all = sequences.map(list.metrics, function(row)
      return sequences.pick(row, { "name", "unit", "formula", "source" })
    end)
    return io.stdout:write(json.encode(json.array(all)), "\n")
  end
  for _, row in ipairs(list.metrics) do
    local unit = row.unit ~= "" and (" (%s)"):format(row.unit) or ""
    io.stdout:write(("%s%s\n    %s\n    source: %s\n"):format(row.name, unit, row.formula, row.source))
  end
end

local function find(name)
  local row = list.find(name)
  if row then return row end
  io.stderr:write(("Error: Unknown metric: %s\nAvailable metrics: %s\n"):format(name,
    table.concat(list.names(), ", ")))
  fail.work("%s is not a metric%s; gentables metric --list describes them", name,
    text.did_you_mean(name, list.names()))
end

-- Whether the command is `metric plot NAME`.
local function is_plot(args) return args[1] == "plot" end

-- Puts --metric in the place of the first argument, or of the one after `plot`.
local function take_metric(args)
  if not args.metric then return end
  if args[1] and not is_plot(args) then fail.input("NAME and --metric are the same; give one of them") end
  table.insert(args, is_plot(args) and 2 or 1, args.metric)
end

-- The arguments after NAME, which are options, too: --trace each, or --csv1 and --csv2.
local function take_inputs(args, row)
  local inputs, options = table.move(args, 2, #args, 1, {}), needs[row.takes].options
  if #inputs == 0 then return end
  for _, option in ipairs(options) do
    if args[option] then
      fail.input("%s is taken as --%s, which is given, too; leave out one", inputs[1], option)
    end
  end
  if #options == 1 then
    args[options[1]] = inputs
  elseif #inputs ~= #options then
    fail.input("%s takes %d files, not %d", row.name, #options, #inputs)
  else
    for i, option in ipairs(options) do args[option] = inputs[i] end
  end
end

-- The folders of `metric plot NAME [DIR [OUT]]`, which are options, too.
local function take_folders(args)
  if #args > 4 then fail.input("metric plot takes NAME, DIR and OUT, not also %s", args[5]) end
  for i, name in ipairs { "traces", "out" } do
    if args[i + 2] and args[name] then
      fail.input("%s and --%s are the same; give one of them", args[i + 2], name)
    end
    args[name] = args[i + 2] or args[name]
  end
  args.traces, args.out = args.traces or TRACES, args.out or GRAPHS
end

local function run_metric(args)
  local row = find(args[1])
  take_inputs(args, row)
  local need = needs[row.takes]
  for _, option in ipairs(need.options) do
    if not args[option] then
      fail_as_documented(need.line:format(row.name), "%s reads --%s; see gentables metric --help", row.name,
        table.concat(need.options, " and --"))
    end
  end
  return require(row.module).run(args, row)
end

return {
  summary = "Prints one metric of serving runs, gate logs, kernel summaries or profiler files.",
  positional = { name = "NAME [INPUT...] | plot NAME [DIR [OUT]]", min = 0, max = math.huge,
    values = sequences.join { list.names(), { "plot" } },
    help = "a metric of --list, with the same as --trace, or --csv1 and --csv2; plot: a picture of it over"
      .. " the runs in DIR" },
  options = {
    { name = "metric", value = "NAME", values = list.names(), help = "the same as NAME" },
    { name = "list", help = "list all metrics: unit, formula, source" },
    { name = "trace", value = "DIR", many = true,
      help = "a run's folder, result files of vLLM's or SGLang's benchmark, or a profiler file; repeat it "
        .. "for a table of runs" },
    { name = "csv1", value = "FILE", help = "communicationOverhead: the kernel summary of the base" },
    { name = "csv2", value = "FILE", help = "communicationOverhead: the kernel summary to compare with it" },
    { name = "json",
      help = "print JSON: count, mean, median, spread and the files used; with --list its rows" },
    { name = "traces", value = "DIR",
      help = "plot: the folder with the runs' folders, as DIR (default: trace_collection)" },
    { name = "out", value = "DIR", help = "folder of the files (default: the working folder; plot: graphs)" },
    { name = "peak-tflops", value = "N", type = "number", above = 0,
      help = "mfu: peak of the GPU, in TFLOP/s; required for a number" },
    { name = "peak-gbps", value = "N", type = "number", above = 0,
      help = "bandwidth metrics: peak of the memory or link, in GB/s" },
    collective.option,
  },
  example = "gentables metric --list\n  " .. example_of "metric step_time \\\n    --trace {TRACE}",
  run = function(args)
    if args.list then
      print_list(args.json)
      return
    end
    collective.add_kernels(args.collectives)
    take_metric(args)
    if #args == 0 then fail.input("metric needs a NAME; gentables metric --list lists them") end
    if is_plot(args) then
      if #args < 2 then fail.input("metric plot needs a NAME; gentables metric --list lists them") end
      take_folders(args)
      return require("serving.series_plot").run(args, find(args[2]))
    end
    return run_metric(args)
  end,
}
