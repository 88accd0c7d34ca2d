-- gentables workload pipeline: from a workload to its page with one command: sweep, then report.
local options = require "base.options"
local report = require "verbs.workload.report"
local sweep = require "verbs.workload.sweep"

return {
  summary = "From a workload to its page: measures the sweep, analyses its traces and writes the findings.",
  options = options.with(sweep.options, report.options),
  example = "gentables workload pipeline -f small -p 2 -c 1,2 -t 1 -o experiments/a",
  run = function(args)
    report.check(args)
    local folder, failed = sweep.measure(args)
    local code = report.make(folder, args)
    return code ~= 0 and code or failed > 0 and 1 or 0
  end,
}
