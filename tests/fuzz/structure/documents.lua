-- Jobs that read JSON of gentables itself, and of serving runs: provenance, thresholds, caches, results.
local json = require "fuzz.structure.json"
local tokens = require "fuzz.structure.tokens"
local trial = require "fuzz.structure.trial"

local read, job, work = trial.text, trial.mutated_by(json.mutate), os.getenv("WORK") or "structure"

-- The texts of `files`, with `prefix` in place of out/.
local function moved(files, prefix)
  local out = {}
  for name, text in pairs(files) do out[name:gsub("^out/", prefix)] = text end
  return out
end

-- A job of benches.lua by its name.
local function lying(name)
  for _, row in ipairs(require "fuzz.structure.benches") do
    if row[1] == name then return row end
  end
end

local rows = moved(trial.made(lying("sweep"), work .. "/documents/swept"), "in/")
local provenance = "in/rows/benchmark.tp2.host.json"

local function with(files, more)
  local out = {}
  for _, each in ipairs { files, more } do
    for name, text in pairs(each) do out[name] = text end
  end
  return out
end

-- A function of a name and a target: a second run of this job of benches.lua, into the files of the first.
local function second_run(first_name, folder)
  local first = lying(first_name)
  local made = trial.made(first, work .. "/documents/" .. folder)
  return function(name, target)
    local row = table.move(first, 2, #first, 2, { name })
    row.partial, row.programs, row.code = true, first.programs, first.code
    return job(row, with(first.files, made), target)
  end
end
local tune_again, workload_again = second_run("tune", "tuned"), second_run("workload sweep", "workload")
local RESULT = "out/sweep/1thread/nccl_2channels/result.json"

local golden_rows = { ["in/benchmark.tp2.sm90.csv"] = read("tests/golden/sm90/benchmark.tp2.sm90.csv") }
local card = "workload:\n  model:\n    phase: inference\n    moe: true\n"
local serving = { ["in/run/card.yaml"] = card,
  ["in/run/results_json/a.json"] = '{"completed": 3, "ttfts": [0.1, 0.2], "itls": [[0.1], []], '
    .. '"errors": [""],\n "mean_ttft_ms": 4518.32, "p99_ttft_ms": 9, "output_throughput": 1.5}\n' }
local gates = { ["in/run/card.yaml"] = card, ["in/run/gates_logs_a/gate_logs_10.json"] =
  '{"step": [7, 7], "num_tokens": [8, 8], "expert_loads": [[4, 4, 0, 0], [0, 0, 0, 8]]}\n' }

return {
  job({ "generate", "generate", "--data-dir", "in/rows", "--arch", "host", "--out", "out/tables" }, rows,
    provenance),
  job({ "merge", "merge", "in/rows/benchmark.tp2.host.csv", "--out", "out/merged" }, rows, provenance),
  job({ "report", "report", "--data-dir", "in/rows", "--arch", "host", "--out", "out/report" }, rows,
    provenance),
  job({ "compare", "compare", "in/rows", "in/rows", "--out", "out/compare.html" }, rows, provenance),
  job({ "history", "history", "add", "in/rows", "--database", "out/h.db", partial = true,
    needs = "core.sqlite" }, rows, provenance),
  job({ "thresholds", "regret", "--table", "in/thresholds.json", "--rows", "in/benchmark.tp2.sm90.csv" },
    with(golden_rows, { ["in/thresholds.json"] = read("tests/golden/sm90/thresholds.json") }),
    "in/thresholds.json"),
  tune_again("tune cache", "out/cache.json"),
  tune_again("tuned", "out/tuned/tuned.json"),
  workload_again("workload settings", "out/sweep/workload.json"),
  workload_again("workload result", RESULT),
  job({ "serving", "metric", "TTFT", "--trace", "in/run", "--json", documented = true, needs = "core.yaml" },
    serving, "in/run/results_json/a.json"),
  job({ "card", "metric", "TTFT", "--trace", "in/run", documented = true, needs = "core.yaml",
    mutate = tokens.mutator { "- x", "&a", "*a", "!!python/object:x", "|", ">", "? ", "---", "..." } },
    serving, "in/run/card.yaml"),
  job({ "gates", "metric", "token_to_expert_assignment", "--trace", "in/run", documented = true,
    needs = "core.yaml" }, gates, "in/run/gates_logs_a/gate_logs_10.json"),
}
