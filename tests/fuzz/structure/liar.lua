-- A bench, a workload program or a replay program that prints prepared lines, whatever is requested, and then
-- ends as its `ending` says. Mutants of both are lies.
--
--   local files = liar.files("in/bench", "gentables-bench protocol=3 ...\n", { answers = "..." })
--
-- The program is in/bench/program. It prints `version` if it is started with --version; for --NAME the file
-- NAME
-- if there is one, and else `answers`.
local tokens = require "fuzz.structure.tokens"
local values = require "fuzz.structure.values"

local liar = {}

local PROGRAM = [[
#!/bin/sh
folder=${0%/*}
name=${1#--}
if [ "$name" = version ]; then exec cat "$folder/version"; fi
if [ ! -e "$folder/$name" ] || [ "$name" = "" ]; then name=answers; fi
cat "$folder/$name"
. "$folder/ending"
]]

-- A conversation ends at a line `quit`, or with stdin; a list ends by itself.
liar.ending = '[ "$name" != answers ] || while read -r line && [ "$line" != quit ]; do :; done\n'

-- What a program may do in place of an end.
local endings = { "exit 0\n", "exit 1\n", "exit 3\n", "kill -KILL $$\n", "kill -SEGV $$\n",
  "echo wrong >&2; exit 1\n",
  "while :; do cat \"$folder/$name\" || exit; done\n", "exec cat /dev/zero\n", "exec yes\n", "exec yes >&2\n",
  "yes | tr -d '\\n'\n", "head -c 9000000 /dev/zero | tr '\\0' x\n", "printf 'half a line'\n",
  "head -c 9000 /dev/urandom\n", "exec >&-; exec 2>&-; exit 0\n", "yes '%s%n' | head -n 9000 >&2; exit 1\n",
  "printf 'gentables-bench: \\033[31m %05000d\\n' 7 >&2; exit 1\n" }

local words = { "row", "none", "done", "error", "hello", "ready", "strategy", "progress", "pass", "accepted",
  " id=1", " reason=", " reason=x y", " strategy=MPI", " strategy=TWOSHOT", "\nready\n", "\ndone id=1\n",
  "=" }

-- Mutants of answers for one of an ending: some of these take ten seconds until gentables ends the program.
local ANSWERS_SHARE = 8

local mutate_lines = tokens.mutator(words)

function liar.mutate_ending() return values.one_of(endings) end

-- The files of a liar in a folder, by name.
function liar.files(folder, version, answers)
  local files = { [folder .. "/program"] = PROGRAM, [folder .. "/version"] = version,
    [folder .. "/ending"] = liar.ending }
  for name, text in pairs(answers) do files[folder .. "/" .. name] = text end
  return files
end

-- Completes a job: its files, and what is mutated of them.
function liar.job(job, folder, version, answers)
  job.files, job.targets, job.mutate = job.files or {}, {}, {}
  for name, text in pairs(liar.files(folder, version, answers)) do job.files[name] = text end
  for name in pairs(answers) do
    for _ = 1, ANSWERS_SHARE do job.targets[#job.targets + 1] = folder .. "/" .. name end
    job.mutate[folder .. "/" .. name] = mutate_lines
  end
  table.sort(job.targets)
  for _, name in ipairs { "version", "ending" } do job.targets[#job.targets + 1] = folder .. "/" .. name end
  job.mutate[folder .. "/version"], job.mutate[folder .. "/ending"] = mutate_lines, liar.mutate_ending
  job.programs = { folder .. "/program" }
  job.crashes = true
  return job
end

-- The transcript of a bench that is asked for MPI and ONESHOT in cells of 64 elements and these token counts.
function liar.sweep_answers(token_counts)
  local lines = { "hello protocol=3 bench=liar world_size=2 nodes=1 ranks_per_node=2 cores=2 "
    .. "placement=dedicated isa=portable roundtrip_us=0.1 compiler=none library=Open MPI v4.1.4",
    "strategy name=MPI status=available", "strategy name=ONESHOT status=available",
    "strategy name=MPI_SM status=unavailable reason=not here", "ready" }
  for id, tokens_of_cell in ipairs(token_counts) do
    for place, strategy in ipairs { "MPI", "ONESHOT" } do
      local time = 3 * place + tokens_of_cell / 1000
      lines[#lines + 1] = ("row id=%d strategy=%s time_us=%.4f low_us=%.4f high_us=%.4f samples=20 "
        .. "min_us=%.4f p95_us=%.4f p99_us=%.4f skew_us=0.1 bound_us=0.5 bits=%016x mode=eager "
        .. "accumulate=fp32 placement=dedicated"):format(id, strategy, time, 0.9 * time, 1.1 * time,
          0.8 * time, 1.2 * time, 1.3 * time, place)
    end
    lines[#lines + 1] = ("done id=%d roundtrip_us=0.1"):format(id)
  end
  return table.concat(lines, "\n") .. "\n"
end

liar.version = "gentables-bench protocol=3 bench=liar isa=portable compiler=none library=Open MPI v4.1.4\n"

liar.spec = [[
return { arch = "host", tp = { 2 }, fusions = { "NONE" }, hidden_sizes = { 64 },
  num_tokens = { 1, 4 }, strategies = { "MPI", "ONESHOT" }, limits = { launches = 1 } }
]]

return liar
