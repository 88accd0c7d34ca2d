-- gentables metric: numbers of serving runs, gate logs, kernel summaries and profiler files. The list is
-- metric/list.lua; this file reads the command line and hands it to the metric's file.
local fail = require "base.fail"
local list = require "metric.list"
local refuse = require "serving.refuse"

-- What each kind of metric cannot do without: options, and the documented line for their absence.
local needs = {
  trace = { options = { "trace" }, line = "Error: --trace argument required for metric: %s" },
  activity = { options = { "trace" }, line = "Error: --trace argument required for metric: %s" },
  summaries = { options = { "csv1", "csv2" },
    line = "Error: %s metric requires --csv1 and --csv2 arguments" },
}

local function print_list()
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
  fail.work("%s is no metric; gentables metric --list says what each one is", name)
end

-- Whether `metric plot NAME` was asked for; the name is then the second word.
local function is_plot(args) return args[1] == "plot" end

local function run_metric(args)
  local row = find(args[1])
  local need = needs[row.takes]
  for _, option in ipairs(need.options) do
    if not args[option] then
      refuse(need.line:format(row.name), "%s reads --%s; see gentables metric --help", row.name,
        table.concat(need.options, " and --"))
    end
  end
  return require(row.module).run(args, row)
end

return {
  summary = "Prints one metric of serving runs, gate logs, kernel summaries or profiler files.",
  positional = { name = "NAME | plot NAME", min = 0, max = 2,
    help = "a metric of --list; plot: its picture over runs" },
  options = {
    { name = "list", help = "say what every metric is: unit, formula, source" },
    { name = "trace", value = "DIR", many = true,
      help = "a run's folder, or a profiler file; again for a table" },
    { name = "csv1", value = "FILE", help = "communicationOverhead: the kernel summary to compare with" },
    { name = "csv2", value = "FILE", help = "communicationOverhead: the kernel summary that is judged" },
    { name = "json", help = "count, mean, median, spread and the files used, for programs" },
    { name = "traces", value = "DIR", help = "plot: the folder of the runs' folders" },
    { name = "out", value = "DIR", help = "where files go (default: the working folder)" },
    { name = "peak-tflops", value = "N", help = "mfu: what the GPU could do; no peak, no number" },
    { name = "peak-gbps", value = "N", help = "bandwidth metrics: what memory or link could do" },
  },
  example = "gentables metric TTFT --trace runs/baseline_32_8192",
  run = function(args)
    if args.list then return print_list() end
    if #args == 0 then fail.input("metric needs a NAME; gentables metric --list has them") end
    if is_plot(args) then
      if #args < 2 then fail.input("metric plot needs a NAME; gentables metric --list has them") end
      return require("serving.series_plot").run(args, find(args[2]))
    end
    if #args > 1 then fail.input("metric takes one NAME, not also %s", args[2]) end
    return run_metric(args)
  end,
}
