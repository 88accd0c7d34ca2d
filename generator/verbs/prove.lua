-- gentables prove: runs a program with a file for its MPI library, and shows whether the library obeys it.
local asked = require "proving.asked"
local by_turns = require "proving.by_turns"
local fail = require "base.fail"
local json = require "codec.json"
local quantities = require "base.quantities"
local sequences = require "base.sequences"
local verdict = require "proving.verdict"
local watched_run = require "proving.watched_run"

local FILES = "ompi_rules.conf, ompi_tp{N}.conf, mpich_selection.json, ucc.conf..."

-- The cells of a run as JSON.
local function json_cells(run)
  return json.array(sequences.map(run.cells, function(cell)
    local obeyed = cell.obeyed
    if obeyed == nil then obeyed = json.null end
    return { ranks = cell.ranks, bytes = cell.bytes, calls = cell.calls, asked = cell.asked or json.null,
      obeyed = obeyed, ran = json.array(sequences.map(cell.ran, function(ran)
        return { algorithm = ran.algorithm or json.null, inner = ran.inner, calls = ran.calls }
      end)) }
  end))
end

-- Raises if the run has no call that a file could decide about.
local function check_calls(command, run)
  if #run.cells == 0 then
    local words = "%s: calls no MPI_Allreduce on two ranks or more, so nothing is shown"
    fail.work(words, table.concat(command, " "))
  end
end

local function prove(args, of, command)
  local run = watched_run.run(command, { environment = of.environment, files = of.files,
    seconds = args.timeout })
  verdict.check_read(of, run)
  check_calls(command, run)
  local counts = verdict.of(of, run)
  if args.json then
    print(json.encode { file = of.path, library = verdict.library(run), ranks = #run.ranks,
      obeyed = counts.obeyed, not_obeyed = counts.not_obeyed, own = counts.own, cells = json_cells(run) })
  else
    verdict.print(of, run, counts)
  end
  return verdict.is_proof(of, counts) and 0 or 1
end

local function time(args, of, command)
  local result = by_turns.measure(command, of, args.turns or by_turns.USUAL, args.timeout)
  local counts = verdict.of(of, result.last)
  if args.json then
    print(json.encode { file = of.path, library = verdict.library(result.last), ratio = result.ratio,
      low = result.low, high = result.high, slower = result.is_slower, with_s = json.array(result.with),
      without_s = json.array(result.without), not_obeyed = counts.not_obeyed })
  else
    by_turns.print(of, result)
  end
  if counts.not_obeyed > 0 then
    fail.note("%s not obeyed; gentables prove without --time lists them",
      quantities.counted(counts.not_obeyed, "cell"))
  end
  return result.is_slower and 1 or 0
end

return {
  summary = "Runs a program with a file for its MPI library, and prints which algorithm ran at each\n"
    .. "communicator size and message size, beside the one that the file asks for. Exit code 1: not obeyed,\n"
    .. "or its rules decide none of the cells; 2: not read. With --time, runs the program with the file\n"
    .. "and without it by turns, and prints the ratio of the times with its interval; exit code 1: slower\n"
    .. "with the file.",
  positional = { name = "FILE -- COMMAND...", min = 2, max = math.huge, command = true,
    help = FILES .. ", and a command such as mpirun -n 2 PROGRAM (as root mpirun\n"
      .. "needs --allow-run-as-root), whose output is not shown" },
  options = {
    { name = "time", help = "compare the times with the file and without it" },
    { name = "turns", value = "N", type = "whole", least = by_turns.LEAST, most = 1000,
      help = ("launches of each kind with --time (default: %d)"):format(by_turns.USUAL) },
    { name = "timeout", value = "SECONDS", type = "number", above = 0, most = 1000000, default = 600,
      help = "limit of a launch" },
    { name = "json", help = "print JSON" },
  },
  example = "gentables prove tables/host/ompi_rules.conf -- \\\n"
    .. "    mpirun -n 2 gentables-bench -b 4K -e 1M --strategies MPI --samples 20",
  run = function(args)
    if args.turns and not args.time then fail.input("--turns %d goes with --time", args.turns) end
    local of = asked.read(args[1])
    if (of.unchecked or 0) > 0 then
      fail.note("%s: not checked: %s with nnodes above 1, as only ranks on one node are seen", of.path,
        quantities.counted(of.unchecked, "section"))
    end
    local command = table.move(args, 2, #args, 1, {})
    return (args.time and time or prove)(args, of, command)
  end,
}
