-- gentables workload report: the analysis of a sweep: trace pipeline's reports, variance, time stamps,
-- overlap, pictures and merged traces, and a page that explains the numbers in words. Keeps existing results.
local fail = require "base.fail"
local options = require "base.options"
local pipeline = require "verbs.trace.pipeline"
local store = require "workload.store"
local sweep_page = require "workload.sweep_page"

local report = {}

local PAGE = "workload.html"

report.summary = "Analyses a sweep: variance, time stamps, overlap, pictures, merged traces, a page."
report.positional = { name = "DIR", min = 1, max = 1, help = "a sweep of gentables workload sweep" }
report.options = {
  { name = "top-k", value = "K", help = "GEMMs of each trace (default: 5)" },
  { name = "without", value = "STEP", comma = true,
    one_of = options.find(pipeline, "without").one_of, help = "leave out steps of trace pipeline" },
  { name = "csv", help = "only CSVs, no workbooks" },
  { name = "gzip", help = "pack the merged traces" },
}
report.example = require("trace.runs.example").of "workload report {SWEEP}"

-- Appends the options of trace pipeline for these of the report to `out`.
local function pipeline_options(args, out)
  if args.top_k then table.move({ "--top-k", args.top_k }, 1, 2, #out + 1, out) end
  for _, step in ipairs(args.without or {}) do table.move({ "--without", step }, 1, 2, #out + 1, out) end
  for _, flag in ipairs { "csv", "gzip" } do
    if args[flag] then out[#out + 1] = "--" .. flag end
  end
  return options.parse(pipeline, "trace pipeline", out)
end

-- The options for the measured parts of this sweep; the reasons for the rest are reported already.
local function pipeline_args(sweep, args)
  local out = { "--out", sweep.folder }
  for _, entry in ipairs(sweep:measured()) do out[#out + 1] = sweep:path(entry.threads, entry.channels) end
  return pipeline_options(args, out)
end

-- The exit code of trace pipeline. Prints its error, and returns, so that the page is made nevertheless.
local function analyse(sweep, args)
  local ok, result = pcall(function() return pipeline.run(pipeline_args(sweep, args)) end)
  if ok then return result or 0 end
  if not fail.is_failure(result) or result.code > 2 then error(result, 0) end
  fail.note(result.message)
  return result.code
end

-- Raises for a wrong option, before the sweep is measured.
function report.check(args) pipeline.check(pipeline_options(args, {})) end

-- Analyses the sweep in this folder and writes its page. Returns the exit code.
function report.make(folder, args)
  local sweep = store.read(folder)
  local code = #sweep:measured() > 0 and analyse(sweep, args) or 1
  local path = sweep.folder .. "/" .. PAGE
  fail.unless_done(sweep_page.of(sweep):write(path))
  print("written   " .. path)
  return code
end

function report.run(args)
  report.check(args)
  return report.make(args[1], args)
end

return report
