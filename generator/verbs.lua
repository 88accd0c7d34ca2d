-- The verbs of gentables, one row each: name, group (default: more) and one line of help. `gentables --help`
-- is made from this list.
--
-- How to add a verb: a row here, and a file verbs/NAME.lua that returns { summary, options, positional,
-- example, run }. run(args, verbs) returns the exit code; nil is 0. base/options.lua describes how to declare
-- options; the numbers are made in rooms. A verb with commands of its own has a list of them: see
-- verbs/trace.lua.
local fail = require "base.fail"
local help = require "reference.help"
local options = require "base.options"
local sequences = require "base.sequences"
local text = require "base.text"

local verbs = {}

verbs.groups = {
  { name = "measure", help = "measure this machine" },
  { name = "tables", help = "tables, from rows and other tables" },
  { name = "traces", help = "traces and serving runs" },
  { name = "more", help = "more" },
}

verbs.list = {
  { name = "sweep", group = "measure", help = "measure this machine: spec -> rows" },
  { name = "tune", group = "measure",
    help = "measure candidates of any collective: which is best at which size" },
  { name = "replay", group = "measure",
    help = "run the GEMMs and convolutions of a trace again on this machine" },
  { name = "workload", group = "measure",
    help = "steps of GEMMs and collectives that overlap: measured, traced, analysed" },
  { name = "detect", group = "measure",
    help = "this machine: processor, MPI, GPUs, and what can be measured" },
  { name = "generate", group = "tables", help = "rows -> table -> artifacts" },
  { name = "check", group = "tables", help = "compare committed tables with those of the rows" },
  { name = "diff", group = "tables",
    help = "changes between two tables, their cost, and whether the data supports them" },
  { name = "import", group = "tables",
    help = "other programs' measurements -> rows; their tables -> table.csv" },
  { name = "merge", group = "tables", help = "rows of several runs or machines -> one folder of rows" },
  { name = "plot", group = "tables",
    help = "pictures of rows: heat maps, crossovers, confidence, bandwidth, scaling" },
  { name = "report", group = "tables",
    help = "one HTML page: the best strategy of each cell, its confidence, all numbers" },
  { name = "compare", group = "tables", help = "one HTML page: sweeps side by side" },
  { name = "formats", group = "tables",
    help = "files for other programs: who reads them, what was shown, what they leave out" },
  { name = "prove", group = "tables",
    help = "run a program with a file for its MPI library: is it read, obeyed, faster?" },
  { name = "regret", group = "tables", help = "losses of a table's choices on fresh rows" },
  { name = "history", group = "tables",
    help = "times of earlier sweeps: where they changed, and which versions did" },
  { name = "trace", group = "traces", help = "reports, comparisons and merged timelines of profiler traces" },
  { name = "metric", group = "traces",
    help = "one number of a serving run, gate log, kernel summary or profiler file" },
  { name = "doctor", group = "more", help = "what is installed, what is missing, and how to install it" },
  { name = "completion", group = "more", help = "completions of the command line for bash, zsh or fish" },
  { name = "manual", group = "more", help = "man pages of all verbs" },
  { name = "template", group = "more", help = "render one template (the build of the bench uses it)" },
  { name = "lua", group = "more", help = "run a Lua script that may require the modules of gentables" },
}

local function usage() return help.of_program(verbs.list, verbs.groups) end

local function find(name)
  return sequences.named(verbs.list, name)
end

-- Prints the commands of a verb: with --help on stdout, without a command on stderr.
local function print_usage(module, name, is_help)
  (is_help and io.stdout or io.stderr):write(help.of_commands(module.commands, name))
  return is_help and 0 or 2
end

-- The words of gentables.lua for a verb or command, which are also printed on stderr.
local function defaults_of(module, name)
  local project_file = require "surroundings.project_file"
  local words = project_file.words(name, verbs.list, function(key) return options.find(module, key) end)
  if #words > 0 then fail.print("%s: %s", project_file.NAME, table.concat(words, " ")) end
  return words
end

local function run(name, argv)
  local verb = find(name)
  if not verb then
    fail.input("there is no verb %q%s; gentables --help lists them", name,
      text.did_you_mean(name, sequences.field(verbs.list, "name")))
  end
  local module = require("verbs." .. verb.name)
  if module.commands then
    if #argv == 0 or argv[1] == "--help" or argv[1] == "-h" then
      return print_usage(module, name, #argv > 0)
    end
    name, module = module.command(argv)
  end
  if options.wants_help(argv) then
    io.stdout:write(help.of_verb(module, name))
    return 0
  end
  if module.raw then return module.run(argv) end
  return module.run(options.parse(module, name, argv, defaults_of(module, name)), verbs)
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
