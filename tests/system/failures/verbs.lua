-- A small job of each verb: for tests/system/failures, and for temporary_files_are_private.
--
-- How to add one: a row { name, inputs, arguments... }. `inputs` maps names below in/ to texts; an argument
-- begins with in/ or out/ where it names such a file. Further fields, all of which may be nil:
--   before     files below out/ that exist already
--   first      arguments of a job that is done once, before: it writes more inputs
--   code       its exit code (default: 0)
--   needs      a module that may be missing, such as core.sqlite
--   partial    if a part of its work fails, it writes the rest
--   keeps      a pattern of the names of files below out/ that an interrupted job needs to go on
--   volatile   patterns of what differs between two good runs, in files and in stdout
--   environment  { "NAME=VALUE"... }
--   nightly    it is slow: CI leaves it out
local file = require "core.file"
local small_trace = require "small_trace"

local source = os.getenv("SOURCE")

local function read(name) return assert(file.read(source .. "/" .. name)) end

local rows = read("tests/golden/sm90/benchmark.tp2.sm90.csv")
local rows_of_4 = read("tests/golden/sm90/benchmark.tp4.sm90.csv")
local table_csv = read("tests/golden/sm90/table.csv")
local rows_folder = { ["rows/benchmark.tp2.sm90.csv"] = rows }
local spec = [[
return { arch = "host", tp = { 2 }, fusions = { "NONE" }, hidden_sizes = { 64 },
  num_tokens = { 1, 4 }, strategies = { "MPI", "ONESHOT" }, limits = { launches = 1 } }
]]

local serving = {
  ["run/card.yaml"] = "workload:\n  model:\n    phase: inference\n",
  ["run/results_json/a.json"] = '{"completed": 3, "mean_ttft_ms": 4518.32, "p99_ttft_ms": 9}\n',
}
local traces = { ["run/rank0.json"] = small_trace(0), ["run/rank1.json"] = small_trace(1) }
local stand_in = { "--bench", os.getenv("STAND_IN"), "--launcher", "env RANKS={ranks}" }
local dates = '"[a-z_]*date"[^\n]*'

local LAUNCHES = "measured for [^\n]*" -- a bench that cannot be read is started again

local function with(arguments, more)
  return table.move(more, 1, #more, #arguments + 1, arguments)
end

return {
  { "generate", rows_folder, "generate", "--data-dir", "in/rows", "--arch", "sm90", "--out", "out/tables" },
  { "generate again", rows_folder, "generate", "--data-dir", "in/rows", "--arch", "sm90", "--out", "out",
    "--formats", "table,c", before = { ["table.csv"] = "old\n", ["allreduce_table.h"] = "old\n" } },
  { "check", { ["rows/benchmark.tp2.sm90.csv"] = rows },
    first = { "generate", "--data-dir", "in/rows", "--arch", "sm90", "--out", "in/tables" },
    "check", "--data-dir", "in/rows", "--arch", "sm90", "--tables", "in/tables" },
  { "diff", { ["old.csv"] = table_csv, ["new.csv"] = table_csv:gsub(",ONESHOT,", ",TWOSHOT,") },
    code = 1, "diff", "in/old.csv", "in/new.csv" },
  { "import", { ["osu.txt"] = read("tests/readers/inputs/osu_5.txt") },
    "import", "in/osu.txt", "--tp", "2", "--arch", "host", "--out", "out/rows" },
  { "merge", { ["a/benchmark.tp2.sm90.csv"] = rows, ["b/benchmark.tp4.sm90.csv"] = rows_of_4 },
    "merge", "in/a/benchmark.tp2.sm90.csv", "in/b/benchmark.tp4.sm90.csv", "--out", "out/rows" },
  { "plot", rows_folder, nightly = true, "plot", "--data-dir", "in/rows", "--arch", "sm90", "--out", "out",
    "--format", "svg", "--kinds", "best_strategy" },
  { "report", rows_folder, "report", "--data-dir", "in/rows", "--arch", "sm90", "--out", "out/report" },
  { "compare", { ["a/benchmark.tp2.sm90.csv"] = rows, ["b/benchmark.tp2.sm90.csv"] = rows },
    "compare", "in/a", "in/b", "--out", "out/compare.html" },
  { "regret", { ["rows.csv"] = rows, ["table.csv"] = table_csv },
    "regret", "--table", "in/table.csv", "--rows", "in/rows.csv" },
  { "regret of a header", { ["rows.csv"] = rows, ["t.h"] = read("tests/golden/sm90/allreduce_table.h") },
    nightly = true, "regret", "--table", "in/t.h", "--rows", "in/rows.csv" },
  { "history add", rows_folder, needs = "core.sqlite", partial = true,
    "history", "add", "in/rows", "--database", "out/h.db", "--date", "2026-01-01" },
  { "history report", rows_folder, needs = "core.sqlite",
    first = { "history", "add", "in/rows", "--database", "in/h.db", "--date", "2026-01-01" },
    "history", "report", "--database", "in/h.db", "--out", "out/h.html", "--markdown", "out/h.md" },
  { "metric", serving, needs = "core.yaml",
    "metric", "TTFT", "--trace", "in/run" },
  { "trace report", traces, "trace", "report", "in/run/rank0.json", "--out", "out/reports" },
  { "trace merge", traces, "trace", "merge", "in/run/rank0.json", "in/run/rank1.json", "-o", "out/m.json" },
  { "trace collectives", traces, partial = true,
    "trace", "collectives", "in/run", "--out", "out/collectives" },
  { "trace gemm", traces, partial = true, "trace", "gemm", "in/run", "--out", "out/gemm" },
  { "trace gemm with digests", traces, partial = true, keeps = "^digests/",
    "trace", "gemm", "in/run", "--out", "out/gemm", "--digests", "out/digests" },
  { "workload show", {}, "workload", "show", "-f", "moe", "-p", "2" },
  { "template", { ["t.tmpl"] = "% for i = 1, 3 do\nline ${i}\n% end\n" },
    "template", "in/t.tmpl", "--out", "out/t.txt" },
  { "lua", { ["job.lua"] = [[
local fail = require "base.fail"
fail.unless(require("core.file").write(arg[1], ("x"):rep(9)))
print("done")
]] },
    "lua", "in/job.lua", "out/written" },
  with({ "sweep", { ["spec.lua"] = spec }, volatile = { dates, LAUNCHES }, keeps = "%.part$",
    "sweep", "in/spec.lua", "--out", "out", "--exhaustive" }, stand_in),
}
