-- Fuzzing by structure: changes columns of CSV, keys of JSON, words of specs, headers and transcripts, starts
-- gentables with each mutant, and judges how it ends (trial.lua).
--
--   structure.lua                  a sample of each format, with a seed that never changes
--   structure.lua FORMAT           one format for its share of GENTABLES_FUZZ_SECONDS (600), with a random
--                                  seed or SEED
--   structure.lua FORMAT JOB       one job of it
--
-- FUZZ_FILE in the environment is the absolute path of a mutant that an earlier run kept; its folders have
-- the names of format, job and replaced file. Then only this mutant runs; prints how it ends.
--
-- A mutant that gives another message or exit code than those before is mutated in its turn. With FORMAT such
-- mutants are kept in GENTABLES_NIGHTLY_FOLDER (default: WORK), in corpus/structure, where the
-- next run continues. Mutants that break gentables are kept in crashes/structure there.
--
-- How to add a format: a file that returns a list of jobs, and its name in `formats`. A job is
-- { name, arguments... }, and
--   files      texts by name: in/... to read, out/... that exist before
--   targets    the names of those that are mutated; mutate: function text -> mutant, or one for each name
--   needs      a module without which the job is left out, such as core.sqlite
--   programs   names of files that are made executable
--   environment  variables, as "NAME=VALUE"
--   program    what is started (default: gentables); foreign: its messages are not those of gentables
--   code       its exit code without a mutant (default: 0)
--   documented if it fails, its first line is that of another tool
--   partial    it may write files and then end with exit code 2
--   crashes    a mutant may let a child of gentables crash
--   slow       seconds after which it is ended, which is no failure
--   nightly    it is slow, so the sample leaves it out
local child_process = require "system.child_process"
local file = require "core.file"
local process = require "core.process"
local system = require "core.system"
local trial = require "fuzz.structure.trial"
local values = require "fuzz.structure.values"

local formats = { "rows", "documents", "specs", "headers", "traces", "journals", "benches", "requests" }

local SAMPLE_SEED, SAMPLE_JOBS, SAMPLE_MUTANTS = 25, 3, 2 -- jobs of a format, and mutants of each
local MOST_KEPT, MOST_BYTES = 300, 10 << 20 -- mutants of a file that are mutated again; bytes of a mutant
local MOST_REPORTED = 3                     -- mutants with the same complaint
local FROM_ORIGINAL = 0.5                   -- share of mutants that are made from the original

local work = os.getenv("WORK") or "structure"
local kept_folder = os.getenv("GENTABLES_NIGHTLY_FOLDER") or work

local function jobs_of(format)
  local jobs = {}
  for _, row in ipairs(require("fuzz.structure." .. format)) do
    if row.needs and not pcall(require, row.needs) then
      print(("skipped: %s %s: no %s"):format(format, row[1], row.needs))
    else
      jobs[#jobs + 1] = row
    end
  end
  return jobs
end

local function mutator(row, name) return type(row.mutate) == "table" and row.mutate[name] or row.mutate end

-- A name for a job in paths.
local function folder_name(format, row) return format .. "/" .. row[1]:gsub("%W+", "_") end

-- ---- what is kept -----------------------------------------------------------------------------------

-- The folder of the mutants of a target of a job, below corpus/ or crashes/.
local function kept_name(name, target) return ("structure/%s/%s"):format(name, (target:gsub("/", "_"))) end

local function keep(folder, text)
  assert(file.make_folder(folder))
  local path = folder .. "/" .. system.hash(text):sub(1, 16)
  assert(file.write(path, text))
  return path
end

-- The mutants of a file of a job that earlier runs kept.
local function load_kept(state, name)
  local folder = ("%s/corpus/%s"):format(kept_folder, kept_name(state.name, name))
  local texts = {}
  if state.keeps then
    local names = file.status(folder) == "folder" and file.list(folder) or {}
    table.sort(names)
    for i = 1, math.min(#names, MOST_KEPT) do texts[i] = assert(file.read(folder .. "/" .. names[i])) end
  end
  return { folder = folder, texts = texts }
end

local function report(state, name, ran, label)
  local folder = ("%s/crashes/%s"):format(kept_folder, kept_name(state.name, name))
  local path = keep(folder, ran.mutant)
  print(("FAILED: %s: %s: %s\n  %s\n  %s"):format(state.name, label, ran.complaint, path,
    ran.err:match("([^\n]*)\n?$"):gsub("[^\32-\126]", "?"):sub(1, 400)))
  io.stdout:flush()
end

-- ---- runs -------------------------------------------------------------------------------------------

local function start(format, row, keeps)
  local name = folder_name(format, row)
  local state = { row = row, name = name, keeps = keeps, seen = {}, kept = {}, complaints = {}, runs = 0,
    failures = 0, job = trial.prepare(row, work .. "/" .. name) }
  local ran = trial.run(state.job)
  assert(not ran.complaint and ran.code == (row.code or 0),
    ("%s without a mutant: %s\n%s"):format(name, ran.complaint or ran.reason, ran.err .. ran.out))
  for _, target in ipairs(row.targets) do state.kept[target] = load_kept(state, target) end
  return state
end

-- Runs one mutant.
local function step(state, label)
  local row = state.row
  local name = values.one_of(row.targets)
  local kept = state.kept[name]
  local is_new = #kept.texts == 0 or values.chance(FROM_ORIGINAL)
  local text = is_new and row.files[name] or values.one_of(kept.texts)
  local mutant = mutator(row, name)(text):sub(1, MOST_BYTES)
  local ran = trial.run(state.job, name, mutant)
  state.runs = state.runs + 1
  local signature = name .. " " .. ran.signature
  if ran.complaint then
    state.failures = state.failures + 1
    local kind = ran.complaint:gsub("%d+", "0")
    state.complaints[kind] = (state.complaints[kind] or 0) + 1
    if state.complaints[kind] <= MOST_REPORTED then report(state, name, ran, label) end
  elseif not state.seen[signature] and #kept.texts < MOST_KEPT then
    table.insert(kept.texts, mutant)
    if state.keeps then keep(kept.folder, mutant) end
  end
  state.seen[signature] = true
end

local function count(set)
  local number = 0
  for _ in pairs(set) do number = number + 1 end
  return number
end

local function print_state(state)
  print(("%-40s %6d mutants, %4d kinds of ends, %d failures"):format(state.name, state.runs,
    count(state.seen),
    state.failures))
end

-- Some jobs of a format, without those for the night.
local function sample_of(format)
  local jobs, some = {}, {}
  for _, row in ipairs(jobs_of(format)) do
    if not row.nightly then jobs[#jobs + 1] = row end
  end
  for i = 1, math.min(SAMPLE_JOBS, #jobs) do some[i] = table.remove(jobs, math.random(#jobs)) end
  return some
end

local function sample()
  local failures = 0
  math.randomseed(SAMPLE_SEED)
  for _, format in ipairs(formats) do
    for _, row in ipairs(sample_of(format)) do
      local state = start(format, row)
      for number = 1, SAMPLE_MUTANTS do step(state, ("mutant %d"):format(number)) end
      print_state(state)
      failures = failures + state.failures
    end
  end
  return failures
end

-- Runs mutants of all jobs of a format in turns, until the time is over.
local function at_length(format, only_job)
  local seed = tonumber(os.getenv("SEED")) or tonumber(system.hash(tostring(process.now())):sub(1, 8), 16)
  local seconds = tonumber(os.getenv("GENTABLES_FUZZ_SECONDS") or 600) / #formats
  local ends_at = process.now() + seconds
  print(("SEED=%d"):format(seed))
  local states, failures, number = {}, 0, 0
  for _, row in ipairs(jobs_of(format)) do
    if not only_job or row[1] == only_job then states[#states + 1] = start(format, row, true) end
  end
  while process.now() < ends_at do
    number = number + 1
    for _, state in ipairs(states) do
      math.randomseed(seed, number)
      step(state, ("SEED=%d, mutant %d"):format(seed, number))
      child_process.raise_if_interrupted()
    end
  end
  for _, state in ipairs(states) do
    print_state(state)
    failures = failures + state.failures
  end
  return failures
end

-- Runs a kept mutant: the job that its folders name, with this file in place of the target that they name.
local function again(path)
  local format = assert(path:match("/structure/(%w+)/[^/]+/[^/]+/[^/]+$"), "FUZZ_FILE is not a kept mutant")
  for _, row in ipairs(jobs_of(format)) do
    for _, target in ipairs(row.targets) do
      local folder = "/" .. kept_name(folder_name(format, row), target) .. "/"
      if path:find(folder, 1, true) then
        local ran = trial.run(start(format, row).job, target, assert(file.read(path)))
        print(("%s%s%s\n%s"):format(ran.out, ran.err, ran.reason, ran.complaint or "right"))
        return ran.complaint and 1 or 0
      end
    end
  end
  error("FUZZ_FILE is of no job of " .. format)
end

local failures
local repeated = os.getenv("FUZZ_FILE")
if repeated then
  failures = again(repeated)
elseif arg[1] then
  failures = at_length(arg[1], arg[2])
else
  failures = sample()
end
os.exit(failures == 0 and 0 or 1)
