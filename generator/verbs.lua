-- The verbs of gentables, one row each: name and one line of help. `gentables --help` is made from this list.
--
-- How to add a verb: a row here, and a file verbs/NAME.lua that returns { summary, options, positional,
-- example, run }. run(args) returns the exit code; nil is 0. base/options.lua describes how to declare
-- options; the numbers are made in rooms. A verb with commands of its own has a list of them: see
-- verbs/trace.lua.
local fail = require "base.fail"
local options = require "base.options"
local sequences = require "base.sequences"

local verbs = {}

verbs.list = {
  { name = "sweep", help = "measure this machine: spec -> rows" },
  { name = "tune", help = "measure candidates of any collective: which is best at which size" },
  { name = "generate", help = "rows -> table -> artifacts" },
  { name = "check", help = "compare committed tables with those of the rows" },
  { name = "diff", help = "changes between two tables, their cost, and whether the data supports them" },
  { name = "import", help = "other programs' measurements -> rows; their tables -> table.csv" },
  { name = "merge", help = "rows of several runs or machines -> one folder of rows" },
  { name = "plot", help = "pictures of rows: heat maps, crossovers, confidence, bandwidth, scaling" },
  { name = "report", help = "one HTML page: the best strategy of each cell, its confidence, all numbers" },
  { name = "compare", help = "one HTML page: sweeps side by side" },
  { name = "regret", help = "losses of a table's choices on fresh rows" },
  { name = "history", help = "times of earlier sweeps: where they changed, and which versions did" },
  { name = "metric", help = "one number of a serving run, gate log, kernel summary or profiler file" },
  { name = "trace", help = "reports, comparisons and merged timelines of profiler traces" },
  { name = "replay", help = "run the GEMMs and convolutions of a trace again on this machine" },
  { name = "workload", help = "steps of GEMMs and collectives that overlap: measured, traced, analysed" },
  { name = "detect", help = "this machine: processor, MPI, GPUs, and what can be measured" },
  { name = "template", help = "render one template (the build of the bench uses it)" },
  { name = "lua", help = "run a Lua script that may require the modules of gentables" },
}

local function usage()
  local out = { "usage: gentables VERB [options]\n" }
  for _, verb in ipairs(verbs.list) do out[#out + 1] = ("  %-12s %s"):format(verb.name, verb.help) end
  out[#out + 1] = "\ngentables VERB --help shows the options of a verb and an example.\n"
  return table.concat(out, "\n")
end

local function find(name)
  return sequences.named(verbs.list, name)
end

-- Prints the commands of a verb: with --help on stdout, without a command on stderr.
local function print_usage(module, is_help)
  (is_help and io.stdout or io.stderr):write(module.usage())
  return is_help and 0 or 2
end

local function run(name, argv)
  local verb = find(name)
  if not verb then fail.input("there is no verb %q; gentables --help lists them", name) end
  local module = require("verbs." .. verb.name)
  if module.commands then
    if #argv == 0 or argv[1] == "--help" or argv[1] == "-h" then return print_usage(module, #argv > 0) end
    name, module = module.command(argv)
  end
  if options.wants_help(argv) then
    io.stdout:write(options.help(module, name))
    return 0
  end
  if module.raw then return module.run(argv) end
  return module.run(options.parse(module, name, argv))
end

-- Runs the verb that the command line names; returns the exit code. Errors of use and input are printed here.
function verbs.main(name, ...)
  if name == nil then
    io.stderr:write(usage())
    return 2
  elseif name == "--help" or name == "-h" or name == "help" then
    io.stdout:write(usage())
    return 0
  elseif name == "--version" then
    io.stdout:write("gentables ", gentables.version, "\n")
    return 0
  end
  local ok, result = xpcall(run, fail.trace, name, { ... })
  if ok then return result or 0 end
  result = fail.of(result)
  if fail.is_failure(result) then
    fail.note(result.message)
    return result.code
  end
  error(result, 0)
end

return verbs
