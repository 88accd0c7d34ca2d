-- Jobs that resume: the journal of an interrupted sweep, with and without sums that are right.
local liar = require "fuzz.structure.liar"
local protocol = require "conversation.protocol"
local system = require "core.system"
local tokens = require "fuzz.structure.tokens"
local trial = require "fuzz.structure.trial"
local values = require "fuzz.structure.values"

local JOURNAL = "out/benchmark.tp2.host.csv.part"

local mutate_lines = tokens.mutator { "journal", "begin", "cell", "row", "none", "done", " strategy=AUTO",
  " reason=x", " launch=9", " size=1", " splits=1:2", "sum=0000000000000000", " time_us=1e300" }

-- The same journal with the sums of its present lines.
local function with_sums(text)
  local out, record = {}, ""
  for line in text:gmatch("[^\n]*\n?") do
    local kind = line:match("^%l+")
    if kind == "done" or kind == "begin" then
      out[#out + 1] = record .. protocol.line(kind, { { "sum", system.hash(record) } })
      record = ""
    else
      record = record .. line
    end
  end
  return table.concat(out) .. record
end

local function mutate(text)
  local mutant = mutate_lines(text)
  return values.chance(0.7) and with_sums(mutant) or mutant
end

-- The journal of a killed sweep: the bench kills gentables in the second cell.
local function journal_of_killed_sweep()
  local row = liar.job({ "killed", "sweep", "in/spec.lua", "--out", "out", "--exhaustive", "--bench",
    "in/bench/program", "--launcher", "env RANKS={ranks}", files = { ["in/spec.lua"] = liar.spec } },
    "in/bench",
    liar.version, { answers = liar.sweep_answers { 1 } })
  row.files["in/bench/ending"] = "kill -KILL $PPID\n"
  return assert(trial.made(row, (os.getenv("WORK") or "structure") .. "/journals/killed")[JOURNAL])
end

local job = { "sweep", "sweep", "in/spec.lua", "--out", "out", "--exhaustive", "--patience", "2", "--bench",
  "in/bench/program", "--launcher", "env RANKS={ranks}", partial = true, targets = { JOURNAL },
  mutate = mutate,
  programs = { "in/bench/program" },
  files = liar.files("in/bench", liar.version, { answers = liar.sweep_answers { 4 } }) }
job.files["in/spec.lua"], job.files[JOURNAL] = liar.spec, journal_of_killed_sweep()
-- A stand-in measures what the journal lacks.
job.files["in/bench/program"] = ([[
#!/bin/sh
if [ "$1" = --version ]; then exec cat "${0%%/*}/version"; fi
STAND_IN_HASH=liar exec '%s' "$@"
]]):format(os.getenv("STAND_IN"))

return { job }
