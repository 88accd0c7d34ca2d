-- Jobs that read C headers and the texts of other programs.
local json = require "fuzz.structure.json"
local liar = require "fuzz.structure.liar"
local tokens = require "fuzz.structure.tokens"
local trial = require "fuzz.structure.trial"

local words = { "/*", "*/", "//", "\\\n", "{", "}", "{{", "}}", ";", "static", "inline", "const", "-1",
  "{-1,-1}", "=",
  "#define x x\n", "\n#include __FILE__\n", '\n#include "/dev/zero"\n', "\n#error x\n", "\n#if 0\n",
  "\n#endif\n",
  "AllReduceBestStrategyTableSM90", "AllReduceBestStrategyTableSM100", "// TP:[2, 4]\n", "// Hidden:[1]\n",
  "// Tokens:[1]\n", "__attribute__((constructor)) void x(void) { for (;;); }", "abort();", "for (;;);",
  "*(int *)0 = 1;", "R\"(", "'", '"' }
local read, job = trial.text, trial.mutated_by(tokens.mutator(words))

local rows = read("tests/golden/sm90/benchmark.tp2.sm90.csv")

local list = {
  job({ "regret", "regret", "--table", "in/t.h", "--rows", "in/benchmark.tp2.sm90.csv", crashes = true,
    nightly = true, partial = true, slow = 100 }, { ["in/t.h"] = read("tests/golden/sm90/allreduce_table.h"),
    ["in/benchmark.tp2.sm90.csv"] = rows }, "in/t.h"),
  job({ "regret fragment", "regret", "--table", "in/generated_lookup_table.cpp", "--rows",
    "in/benchmark.tp2.sm90.csv", crashes = true, nightly = true, slow = 100 },
    { ["in/generated_lookup_table.cpp"] = read("tests/golden/sm90/generated_lookup_table.cpp"),
      ["in/benchmark.tp2.sm90.csv"] = rows }, "in/generated_lookup_table.cpp"),
  job({ "diff", "diff", "in/old.h", "in/new.h", "--arch", "sm90" },
    { ["in/old.h"] = read("tests/golden/sm90/generated_lookup_table.cpp"),
      ["in/new.h"] = read("tests/golden/sm90/generated_lookup_table.cpp") }, "in/new.h"),
}

-- A transcript of a bench: requests and answers.
local answers = liar.sweep_answers { 4 }
local asked = "measure id=1 op=allreduce dtype=bfloat16 fusion=NONE hidden_size=64 num_tokens=4 mode=eager "
  .. "min_samples=1 max_samples=2 budget_us=1 precision=0 seed=1 strategies=MPI,ONESHOT\n"
list[#list + 1] = job({ "import transcript", "import", "in/transcript.txt", "--arch", "host", "--out",
  "out/rows" }, { ["in/transcript.txt"] = answers:gsub("ready\n", "ready\n" .. asked) }, "in/transcript.txt")

-- { file, argument... }
for _, import in ipairs {
  { "tests/golden/sm90/generated_lookup_table.cpp", "--arch", "sm90" },
  { "tests/fuzz/corpus/readers/header.h", "--arch", "sm90" },
  { "tests/readers/inputs/trtllm_a.txt", "--arch", "sm90", "--calls", "10" },
  { "tests/readers/inputs/nccl_tests.txt", "--arch", "sm90" },
  { "tests/readers/inputs/nccl_tests_2.10.txt", "--arch", "sm90" },
  { "tests/readers/inputs/nccl_tests.json", "--arch", "sm90", mutate = json.mutate },
  { "tests/readers/inputs/osu_5.txt", "--arch", "host", "--tp", "2" },
  { "tests/readers/inputs/osu_7.txt", "--arch", "host", "--tp", "2" },
  { "tests/readers/inputs/flashinfer.txt", "--arch", "sm90", "--tp", "2" },
  { "tests/readers/inputs/flashinfer.md", "--arch", "sm90" },
  { "tests/readers/inputs/ompi_rules.conf", "--arch", "host" },
  { "tests/readers/inputs/ompi_rules.json", "--arch", "host", mutate = json.mutate },
  { "tests/fuzz/corpus/readers/nccl_tuner.csv", "--arch", "sm90", "--nodes", "1" },
} do
  local name = "in/" .. import[1]:match("[^/]*$")
  local row = { "import " .. import[1]:match("[^/]*$"), "import", name, "--out", "out/rows",
    code = import.code, mutate = import.mutate }
  list[#list + 1] = job(table.move(import, 2, #import, #row + 1, row), { [name] = read(import[1]) }, name)
end

return list
