-- What temporary_files_are_private runs under its watcher: the small job of each verb that
-- tests/system/failures/verbs.lua has, and jobs for the other verbs and for each other part of gentables that
-- starts processes or makes temporary folders.
--
-- How to add one: a row as in verbs.lua, of which `before`, `first`, `code` and `needs` count here, too; and
--   programs   names of files that are made executable; those in in/bin are found by their names
local file = require "core.file"
local small_trace = require "small_trace"

local source, stand_in = os.getenv("SOURCE"), os.getenv("STAND_IN")

local function read(name) return assert(file.read(source .. "/" .. name)) end

-- The row of a job of tests/fuzz/structure. `more`: files of in/ in addition, or in the place of its own.
local function fuzzed(list, name, more)
  for _, job in ipairs(require("fuzz.structure." .. list)) do
    if job[1] == name then
      local files = {}
      for path, text in pairs(job.files) do files[path:gsub("^in/", "")] = text end
      for path, text in pairs(more or {}) do files[path] = text end
      return table.move(job, 2, #job, 3, { list .. ": " .. name, files, programs = job.programs })
    end
  end
  error("there is no job " .. name)
end

local rows = read("tests/golden/sm90/benchmark.tp2.sm90.csv")
local lookup = read("tests/golden/sm90/allreduce_table.h")

-- ---- sweeps -----------------------------------------------------------------------------------

local spec = [[
return { arch = "host", tp = { 2 }, fusions = { "NONE" }, hidden_sizes = { 64 }, num_tokens = { 1 },
  strategies = { "MPI", "AUTO" }, limits = { launches = 1 } }
]]

local spec_of_nodes = [[
return { arch = "host", tp = { 2 }, nodes = { 2 }, fusions = { "NONE" }, hidden_sizes = { 64 },
  num_tokens = { 1 }, strategies = { "MPI" }, limits = { launches = 1 } }
]]

-- Open MPI, for the search for its parameters: each launch writes the same times.
local mpirun = [[
#!/bin/sh
if [ "$1" = --version ]; then echo "mpirun (Open MPI) 4.1.4" && exit; fi
for last; do :; done # the file of --output_file
for size in 256 65536 1048576; do
    for strategy in ONESHOT MPI; do
        printf '%s{"size":%d,"strategy":"%s","out_of_place":{"time":2}}' "$comma" "$size" "$strategy"
        comma=,
    done
done | sed 's/.*/{"results":[&]}/' >"$last"
]]

-- ---- workloads --------------------------------------------------------------------------------

-- A program that writes the traces of its request, too: in/bench/rank0.json and in/bench/rank1.json.
local writes_traces = [[
while read -r line && [ "$line" != quit ]; do
    path=${line##*path=}
    case $line in
    run\ *path=?*) for rank in 0 1; do
        trace=$(echo "$path" | sed "s/%r/$rank/") && mkdir -p "${trace%/*}"
        cp "$folder/rank$rank.json" "$trace"
    done ;;
    esac
done
]]
local sweep = fuzzed("benches", "workload sweep", { ["bench/ending"] = writes_traces,
  ["bench/rank0.json"] = small_trace(0), ["bench/rank1.json"] = small_trace(1) })
local sweep_words = table.move(sweep, 3, #sweep, 1, {})

-- A command of `workload` after that sweep.
local function after_sweep(...)
  return { "workload " .. (...), sweep[2], programs = sweep.programs, first = sweep_words, "workload", ... }
end

-- The same sweep and its report, without the pictures, which trace pipeline draws, too.
local pipeline = { "workload pipeline", sweep[2], programs = sweep.programs,
  "workload", "pipeline", "--without", "plots" }
table.move(sweep, 5, #sweep, #pipeline + 1, pipeline)

-- ---- traces -----------------------------------------------------------------------------------

local traces = { ["run/rank0.json"] = small_trace(0), ["run/rank1.json"] = small_trace(1) }
local sweep_of_traces = {}
for channels = 1, 2 do
  for rank = 0, 1 do
    local name = "sweep/1thread/nccl_%dchannels/torch_profiler/rank%d/trace_step1.json"
    sweep_of_traces[name:format(channels, rank)] = small_trace(rank)
  end
end

-- A replay of a trace of an AMD GPU, with stand-ins for AMD's programs.
local replay = fuzzed("benches", "replay")
replay[2]["rank_0.json"] = replay[2]["rank_0.json"]:gsub("^{",
  '{"deviceProperties": [{"id": 0, "name": "AMD Instinct MI300X"}], ')
replay[2]["bin/rocminfo"] = "#!/bin/sh\necho '  Marketing Name:  AMD Instinct MI300X'\n"
replay.programs = { "in/bench/program", "in/bin/rocminfo" }

-- ---- benches on GPUs --------------------------------------------------------------------------

-- On stand-ins for the libraries of GPUs, which a build with CUDA has. NCCL's log is a temporary file.
local function on_gpus()
  local libraries, processes = os.getenv("STAND_INS"), os.getenv("STAND_INS_PROCESSES")
  if not libraries then
    print("left out: benches on GPUs: no stand-ins for GPUs in a build without CUDA, NCCL, cuBLASLt or MPI")
    return {}
  end
  local function with(folders) return { "STAND_IN=real_clock", "LD_LIBRARY_PATH=" .. folders } end
  return {
    { "tune on GPUs", {}, environment = with(libraries), "tune", "--backend", "cuda", "--op", "allreduce",
      "--sizes", "512", "--strategies", "NCCL", "--samples", "1", "--cache", "out/cache.json" },
    { "workload run on GPUs", sweep[2], environment = with(processes .. ":" .. libraries), "workload", "run",
      "-f", "in/w.lua", "-p", "2", "--backend", "cuda" },
  }
end

-- ---- all of them ------------------------------------------------------------------------------

local serving_run = "runs/Mixtral8x7B-vllmTP4-Perlmutter[baseline_8_8192]-group12/"

local two_archs = { ["rows/benchmark.tp2.sm90.csv"] = rows, ["rows/benchmark.tp2.sm100.csv"] = rows }

local jobs = {
  { "plot of a PNG", { ["rows/benchmark.tp2.sm90.csv"] = rows }, "plot", "--data-dir", "in/rows", "--arch",
    "sm90", "--out", "out", "--format", "png", "--kinds", "best_strategy" },
  { "generate without a GPU", {}, code = 2, "generate", "--sm_version", "90" },
  { "generate, after a sweep that fails: 2 without its bench", {}, code = os.getenv "STAND_INS" and 1 or 2,
    environment = { "GENTABLES_LAUNCHER=env RANKS={ranks}" }, "generate", "--sm_version", "90",
    "--save_csv_dir", "out/rows" },
  { "detect", {}, "detect" }, { "doctor", {}, "doctor" }, { "completion", {}, "completion", "bash" },
  { "manual", {}, "manual", "--out", "out/man1" },
  { "prove of a program without ranks", { ["rules.conf"] = "1\n2\n1\n2\n1\n0 4 0 0\n",
      program = "#!/bin/sh\n" }, programs = { "in/program" }, code = 2,
    "prove", "in/rules.conf", "--", "in/program" },
  { "formats of two archs, by this machine's GPUs", two_archs, code = 2, "formats", "--data-dir", "in/rows" },
  { "check of two archs", two_archs, code = 2, "check", "in/rows" },
  { "report of two archs", two_archs, code = 2, "report", "in/rows" },
  { "sweep with an incumbent", { ["spec.lua"] = spec, ["lookup.h"] = lookup }, "sweep", "in/spec.lua",
    "--out", "out", "--exhaustive", "--incumbent", "in/lookup.h", "--bench", stand_in, "--launcher",
    "env RANKS={ranks}" },
  { "sweep over nodes", { ["spec.lua"] = spec_of_nodes,
      ["bin/scontrol"] = "#!/bin/sh\nprintf 'node1\\nnode2\\n'\n" }, programs = { "in/bin/scontrol" },
    environment = { "SLURM_JOB_NODELIST=node[1-2]" }, "sweep", "in/spec.lua", "--out", "out", "--exhaustive",
    "--bench", stand_in, "--launcher", "env RANKS={ranks} NODES={nodes}" },
  { "sweep of parameters", { ["spec.lua"] = spec, ["bin/mpirun"] = mpirun }, programs = { "in/bin/mpirun" },
    "sweep", "in/spec.lua", "--out", "out", "--transport", "--budget", "1e-06", "--bench", stand_in },
  { "metric plot", { [serving_run .. "card.yaml"] = "workload:\n  model:\n    phase: inference\n",
      [serving_run .. "results_json/a.json"] = '{"mean_ttft_ms": 900}\n' }, needs = "core.yaml",
    "metric", "plot", "TTFT", "--traces", "in/runs", "--out", "out" },
  { "trace report of a run", traces, "trace", "report", "in/run", "--out", "out" },
  { "trace report of folders", traces, "trace", "report", "-b", "in", "-f", "rank", "-p", "rank", "--csv" },
  { "trace pipeline", sweep_of_traces, "trace", "pipeline", "in/sweep", "--out", "out" },
  { "trace compare of a sweep", sweep_of_traces,
    first = { "trace", "pipeline", "in/sweep", "--without", "plots,merge" },
    "trace", "compare", "in/sweep", "--out", "out" },
  { "trace digest", traces, "trace", "digest", "in/run", "--out", "out" },
  { "trace plots", sweep_of_traces, first = { "trace", "variance", "in/sweep", "--out", "out" },
    "trace", "plots", "out/top5_gemm_kernels_time_variance.csv" },
  fuzzed("traces", "compare"), fuzzed("traces", "overlap"), fuzzed("traces", "variance"),
  fuzzed("traces", "timestamps"), fuzzed("benches", "tune"), fuzzed("benches", "workload run"), replay, sweep,
  pipeline, after_sweep("report", "out/sweep", "--without", "plots"),
  after_sweep("compare", "out/sweep", "out/sweep", "--label", "a", "--label", "b", "-o", "out/c.html"),
}
for _, list in ipairs { on_gpus(), require "system.failures.verbs" } do
  table.move(list, 1, #list, #jobs + 1, jobs)
end
return jobs
