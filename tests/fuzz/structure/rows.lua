-- Jobs that read CSV: rows, tables, and the CSVs of other programs.
local csv = require "fuzz.structure.csv"
local trial = require "fuzz.structure.trial"

local read, job, work = trial.text, trial.mutated_by(csv.mutate), os.getenv("WORK") or "structure"

local rows, rows_of_4 = read("tests/golden/sm90/benchmark.tp2.sm90.csv"),
  read("tests/golden/sm90/benchmark.tp4.sm90.csv")
local table_csv = read("tests/golden/sm90/table.csv")
local ours = read("tests/fuzz/corpus/rows/ours.csv")
local kernels = [[
Time (%),Total Time (ns),Instances,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Name
60.0,6000,3,2000.0,2000.0,1000,3000,10.0,"gemm<int, float>"
40.0,4000,2,2000.0,2000.0,1000,3000,10.0,"ncclDevKernel_AllReduce_Sum_f32_RING_LL(int, 4)"
]]

local folder = { ["in/rows/benchmark.tp2.sm90.csv"] = rows, ["in/rows/benchmark.tp4.sm90.csv"] = rows_of_4 }
local rows_2, rows_4 = "in/rows/benchmark.tp2.sm90.csv", "in/rows/benchmark.tp4.sm90.csv"

local function generate(name, arch, files, target, ...)
  return job({ name, "generate", "--data-dir", "in/rows", "--arch", arch, "--out", "out/tables", ... }, files,
    target)
end

local list = {
  generate("generate", "sm90", folder, rows_4),
  generate("generate stable", "sm90", { [rows_2] = rows }, rows_2, "--numerics", "stable", "--choose",
    "corner"),
  generate("generate ours", "host", { ["in/rows/benchmark.tp2.host.csv"] = ours },
    "in/rows/benchmark.tp2.host.csv"),
  generate("generate nodes", "sm90", { [rows_2] = rows,
    ["in/rows/benchmark.tp4.nodes2.sm90.csv"] = read("tests/fuzz/corpus/rows/nodes.csv") },
    "in/rows/benchmark.tp4.nodes2.sm90.csv"),
  generate("against", "sm90", { [rows_2] = rows, ["in/table.csv"] = table_csv }, "in/table.csv", "--against",
    "in/table.csv", "--formats", "table"),
  job({ "diff", "diff", "in/old.csv", "in/new.csv", code = 1 }, { ["in/old.csv"] = table_csv,
    ["in/new.csv"] = table_csv:gsub(",ONESHOT,", ",TWOSHOT,") }, "in/new.csv"),
  job({ "diff rows", "diff", "in/old.csv", "in/rows", "--format", "json", code = 1 },
    { ["in/old.csv"] = table_csv:gsub(",ONESHOT,", ",TWOSHOT,"), [rows_2] = rows, [rows_4] = rows_of_4 },
    rows_2),
  job({ "regret", "regret", "--table", "in/table.csv", "--rows", rows_2 },
    { ["in/table.csv"] = table_csv, [rows_2] = rows }, rows_2),
  job({ "regret table", "regret", "--table", "in/table.csv", "--rows", rows_2, "--json" },
    { ["in/table.csv"] = table_csv, [rows_2] = rows }, "in/table.csv"),
  job({ "merge", "merge", rows_2, rows_4, "--out", "out/rows" }, folder, rows_2),
  job({ "compare", "compare", "in/rows", "in/b", "--out", "out/compare.html" },
    { [rows_2] = rows, ["in/b/benchmark.tp2.sm90.csv"] = rows }, "in/b/benchmark.tp2.sm90.csv"),
  job({ "report", "report", "--data-dir", "in/rows", "--arch", "sm90", "--out", "out/report" }, folder,
    rows_2),
  job({ "plot", "plot", "heatmap", rows_2, "--fusion", "NONE", "--out", "out/heatmap.svg", nightly = true },
    folder, rows_2),
  job({ "history", "history", "add", "in/rows", "--database", "out/h.db", "--date", "2026-01-01",
    partial = true, needs = "core.sqlite" }, folder, rows_2),
  generate("shapes", "sm90", { [rows_2] = rows,
    ["in/shapes.csv"] = "tokens,hidden_size,weight\n1,1024,3\n16,2880,1\n256,1024,0.5\n" }, "in/shapes.csv",
    "--formats", "table", "--workload", "in/shapes.csv"),
  job({ "overhead", "metric", "communicationOverhead", "--csv1", "in/a.csv", "--csv2", "in/b.csv",
    documented = true }, { ["in/a.csv"] = kernels, ["in/b.csv"] = kernels:gsub("6000", "7000") }, "in/b.csv"),
}

-- Imports of other programs' CSVs.
for _, name in ipairs { "trtllm_b.csv", "trtllm_benchmark.csv", "trtllm_c.csv", "trtllm_d.csv",
  "nccl_optimizer.csv" } do
  list[#list + 1] = job({ "import " .. name, "import", "in/" .. name, "--arch", "sm90", "--out", "out/rows" },
    { ["in/" .. name] = read("tests/readers/inputs/" .. name) }, "in/" .. name)
end

-- CSVs of the analyses of traces.
local trace = { ["in/rank0.json"] = require("fuzz.structure.traces")[1].files["in/run/rank0.json"] }
local function made(name, arguments)
  arguments.files = trace
  return trial.made(arguments, work .. "/rows/" .. name)
end
local reports = made("reports", { "reports", "trace", "report", "in/rank0.json", "--out", "out", "--csv" })
local two = {}
for name, text in pairs(reports) do
  two[name:gsub("^out/rank0_csvs", "in/a")], two[name:gsub("^out/rank0_csvs", "in/b")] = text, text
end
for _, sheet in ipairs { "GEMM", "gpu_timeline", "ops_unique_args", "kernel_summary" } do
  list[#list + 1] = job({ "compare " .. sheet, "trace", "compare", "in/a", "in/b", "--out", "out/compare",
    "--csv", "--html", partial = true }, two, ("in/b/%s.csv"):format(sheet))
end

local VARIANCE = "top5_gemm_kernels_time_variance.csv"
local varied = made("variance", { "variance", "trace", "variance", "in/rank0.json", "--out", "out" })
list[#list + 1] = job({ "input-csv", "trace", "overlap", "in/rank0.json", "--input-csv", "in/" .. VARIANCE,
  "--out", "out", partial = true }, { ["in/rank0.json"] = trace["in/rank0.json"],
  ["in/" .. VARIANCE] = varied["out/" .. VARIANCE] }, "in/" .. VARIANCE)
list[#list + 1] = job({ "plots", "trace", "plots", "in/" .. VARIANCE, "--out", "out", partial = true,
  nightly = true }, { ["in/" .. VARIANCE] = varied["out/" .. VARIANCE]:gsub("\n,,", "\n256,28,") },
  "in/" .. VARIANCE)

return list
