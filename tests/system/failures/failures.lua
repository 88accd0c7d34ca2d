-- Every call that can fail, fails once: for a small job of each verb (verbs.lua), each system call of a class
-- and each place of the code that allocates memory fails in its turn (fail_at.c). Afterwards
--
-- - the job either did all of its work, or ended with exit code 1 or 2 and one line that has the reason;
-- - no file is half-written, and none is left in TMPDIR; no process is left;
-- - the same command then works, and gives the same bytes.
--
--   failures.lua                     a sample; with GENTABLES_NIGHTLY=1 all
--   failures.lua VERB [CLASS [N]]    all calls of a verb; of a class ("calls": of all but allocations); or
--                                    one, with its output
--
-- Prints how many calls of each class failed in each verb, as a table.
local child_process = require "system.child_process"
local file = require "core.file"
local system = require "core.system"

local work, fail_at, fail_in = os.getenv("WORK"), os.getenv("FAIL_AT"), os.getenv("FAIL_IN")
local is_nightly = os.getenv("GENTABLES_NIGHTLY") == "1"
local only_verb, only_class, only_number = arg[1], arg[2], tonumber(arg[3])

local DEADLINE, PATIENCE = 60, 90 -- seconds for a job; for fail_at, above its deadline
local SAMPLE = 5                  -- classes of each verb of which CI lets a call fail
local SEED = 20

-- The reasons that messages have: the errors of classes.h, or the words of SQLite and of the loader for them.
-- A failed write to stdout has no reason that is known.
local MEMORY = { "Cannot allocate memory", "out of memory", "not enough memory", "failed to map segment",
  "cannot map zero-fill pages" }
local UNCHECKED = "a temporary file in its folder is incomplete" -- libxlsxwriter does not keep the reason
local classes = {
  { "open", "Too many open files" }, { "read", "Input/output error", "disk I/O error", UNCHECKED },
  { "write", "No space left on device", "standard output cannot be written",
    "database or disk is full", UNCHECKED },
  { "fsync", "Input/output error", "disk I/O error" }, { "rename", "Read-only file system" },
  { "link", "Disk quota exceeded" }, { "mkdir", "Disk quota exceeded" },
  { "chmod", "Operation not permitted" }, { "list", "Input/output error" },
  { "lock", "No locks available", "disk I/O error" }, { "mmap", table.unpack(MEMORY) },
  { "fork", "Resource temporarily unavailable" }, { "exec", "Permission denied" },
  { "pipe", "Too many open files in system" }, { "allocation", table.unpack(MEMORY) },
}

-- ---- a job's folder -------------------------------------------------------------------------------

-- Adds what is below a folder to `found`: text by path.
local function gather(folder, prefix, found)
  for _, name in ipairs(file.list(folder) or {}) do
    local path = folder .. "/" .. name
    local kind = file.status(path)
    if kind == "folder" then
      gather(path, prefix .. name .. "/", found)
    else
      found[prefix .. name] = kind == "file" and assert(file.read(path)) or "(no file)"
    end
  end
  return found
end

local function write(folder, files)
  for name, text in pairs(files) do
    local path = folder .. "/" .. name
    assert(file.make_folder(path:match("^(.*)/")))
    assert(file.write(path, text))
  end
end

local Job = {}
Job.__index = Job

-- Makes the folder of a job: in/, and in front of each run out/ and tmp/.
local function new_job(row)
  local folder = work .. "/" .. row[1]:gsub(" ", "_")
  file.remove_tree(folder)
  assert(file.make_folder(folder .. "/in"))
  write(folder .. "/in", row[2])
  local self = setmetatable({ row = row, folder = folder }, Job)
  if row.first then
    self:clear()
    local ran = self:fails("open", 0, 0, row.first)
    assert(ran.how == "exit" and ran.code == 0, ran.err)
  end
  return self
end

function Job:clear()
  for _, name in ipairs { "out", "tmp", "home" } do
    file.remove_tree(self.folder .. "/" .. name)
    assert(file.make_folder(self.folder .. "/" .. name))
  end
  write(self.folder .. "/out", self.row.before or {})
end

function Job:path(argument)
  if argument:find("^in/") or argument:find("^out/") or argument == "out" then
    return self.folder .. "/" .. argument
  end
  return argument
end

-- A text without what differs between two good runs.
function Job:steady(text)
  for _, pattern in ipairs(self.row.volatile or {}) do text = text:gsub(pattern, "") end
  return text
end

-- Runs the job while calls `from` to `to` of a class fail. Returns how it ended { how, code, out, err, calls,
-- left, sites, files, rubbish }: the files below out/, and those left in TMPDIR.
function Job:fails(class, from, to, arguments)
  local argv = { fail_at, fail_in, class, tostring(from), tostring(to), tostring(DEADLINE),
    self.folder .. "/stdout", self.folder .. "/stderr", system.program() }
  for _, argument in ipairs(arguments or table.move(self.row, 3, #self.row, 1, {})) do
    argv[#argv + 1] = self:path(argument)
  end
  local environment = { "TMPDIR=" .. self.folder .. "/tmp", "HOME=" .. self.folder .. "/home", "LC_ALL=C",
    "XDG_CACHE_HOME=" .. self.folder .. "/home/cache", table.unpack(self.row.environment or {}) }
  local ran = child_process.run(argv, { seconds = PATIENCE, environment = environment })
  assert(ran.well, ran.reason .. ": " .. ran.errors)
  local calls, how, code, left = ran.lines[#ran.lines]:match("^calls (%d+) end (%a+) (%d+) left (%d+)$")
  local sites = {}
  for _, line in ipairs(ran.lines) do
    local number, site = line:match("^site (%d+) (%x+)$")
    if number then sites[#sites + 1] = { number = tonumber(number), site = site } end
  end
  table.sort(sites, function(a, b) return a.number < b.number end)
  local files = gather(self.folder .. "/out", "", {})
  for name, text in pairs(files) do
    local is_kept = self.row.keeps and name:find(self.row.keeps)
    files[name] = not is_kept and self:steady(text) or nil
  end
  return { how = how, code = tonumber(code), left = tonumber(left), calls = tonumber(calls), sites = sites,
    out = self:steady(assert(file.read(self.folder .. "/stdout"))),
    err = assert(file.read(self.folder .. "/stderr")), files = files,
    rubbish = next(gather(self.folder .. "/tmp", "", {})) }
end

-- ---- judgement ------------------------------------------------------------------------------------

local function has_reason(text, class)
  for i = 2, #class do
    if text:lower():find(class[i]:lower(), 1, true) then return true end
  end
  return false
end

-- The first line of a text that another one has not at its place.
local function first_new_line(text, other)
  local at = 1
  while at <= #text and text:byte(at) == other:byte(at) do at = at + 1 end
  local start = text:sub(1, at - 1):match(".*()\n") or 0
  return text:match("[^\n]*", start + 1):sub(1, 100)
end

-- What differs between the files of a run and those of a good one; nil if nothing. `before`: files that may
-- also be as they were, or missing. `is_partial`: there may be others, of
-- any content.
local function difference(files, good, before, is_partial)
  for name, text in pairs(files) do
    if not good[name] and not is_partial then return "left behind: " .. name end
    local is_old = before and text == before[name]
    if text ~= good[name] and not is_old and not is_partial then
      return ("differs: %s: %s"):format(name, first_new_line(text, good[name]))
    end
  end
  for name in pairs(before or good) do
    if not files[name] then return "missing: " .. name end
  end
end

-- Why a run with a failed call is wrong; nil if it is right.
local function complaint(row, ran, good, class)
  local before = row.before or {}
  if ran.how ~= "exit" then return ("%s %d"):format(ran.how, ran.code) end
  if ran.left > 0 then return "processes are left" end
  if ran.rubbish then return "left in TMPDIR: " .. ran.rubbish end
  local lacks = difference(ran.files, good.files) or (ran.out ~= good.out and "another output") or nil
  if ran.code == 0 or ran.code == good.code and not lacks then return lacks end
  if ran.code > 2 then return "exit code " .. ran.code end
  if ran.err:find("traceback", 1, true) then return "a traceback" end
  if ran.err:find("internal error", 1, true) then return "an internal error" end
  if not has_reason(ran.err, class) then return "no reason" end
  return difference(ran.files, good.files, before, row.partial)
end

local function print_failure(job, class, number, why, ran)
  local line = (ran.err:match("^[^\n]*\n?") or ""):gsub("\n", "")
  print(("FAILED: %s %s %d: %s: %s"):format(job.row[1], class[1], number, why, line:sub(1, 300)))
  if only_number then print(ran.out .. ran.err) end
end

-- Fails one call. Returns whether all was right.
function Job:fails_well(class, number, good)
  self:clear()
  io.stdout:flush()
  -- Lua collects garbage and tries again if its first allocation fails.
  local last = class[1] == "allocation" and number + 1 or number
  local ran = self:fails(class[1], number, last)
  local why = complaint(self.row, ran, good, class)
  if not why and (difference(ran.files, self.row.before or {}) or number == 1) then
    ran = self:fails("open", 0, 0)
    why = (ran.how ~= "exit" or ran.code ~= good.code) and "the next run fails" or
      difference(ran.files, good.files)
  end
  if why or only_number then print_failure(self, class, number, why or "nothing", ran) end
  return not why
end

-- ---- all of it ------------------------------------------------------------------------------------

local seen_sites = {}

-- The numbers of the calls to fail.
function Job:numbers(class)
  if only_number then return { only_number } end
  self:clear()
  local is_allocation = class[1] == "allocation"
  local ran = self:fails(is_allocation and "site" or class[1], 0, 0)
  local numbers = {}
  for i = 1, is_allocation and 0 or ran.calls do numbers[i] = i end
  for _, site in ipairs(ran.sites) do -- those of earlier verbs have failed there
    if not seen_sites[site.site] then numbers[#numbers + 1] = site.number end
    seen_sites[site.site] = true
  end
  if is_nightly or only_verb then return numbers end
  return { #numbers > 0 and numbers[math.random(#numbers)] or nil }
end

-- Some of the classes, at random.
local function sample_of(all)
  local left, sample = table.move(all, 1, #all, 1, {}), {}
  for i = 1, SAMPLE do sample[i] = table.remove(left, math.random(#left)) end
  return sample
end

local function run_job(row, results)
  local job = new_job(row)
  job:clear()
  local good = job:fails("open", 0, 0)
  local is_good = good.how == "exit" and good.code == (row.code or 0) and not good.rubbish
  assert(is_good, row[1] .. ": " .. good.err)
  local again = (job:clear() or true) and job:fails("open", 0, 0)
  local why = difference(again.files, good.files) or (again.out ~= good.out and "another output")
  assert(not why, ("%s: two good runs differ: %s"):format(row[1], why))
  results[row[1]] = {}
  for _, class in ipairs((is_nightly or only_verb) and classes or sample_of(classes)) do
    local is_call = class[1] ~= "allocation"
    if not only_class or class[1] == only_class or only_class and only_class:find("^calls") and is_call then
      local numbers, passed = job:numbers(class), 0
      for _, number in ipairs(numbers) do
        if job:fails_well(class, number, good) then passed = passed + 1 end
      end
      results[row[1]][class[1]] = { passed = passed, count = #numbers }
    end
  end
end

local function print_table(rows, results)
  local names, rule = { "verb" }, { "---" }
  for i, class in ipairs(classes) do names[i + 1], rule[i + 1] = class[1], "---:" end
  print("| " .. table.concat(names, " | ") .. " |\n|" .. table.concat(rule, "|") .. "|")
  local all, passed = 0, 0
  for _, row in ipairs(rows) do
    local cells = { row[1] }
    for i, class in ipairs(classes) do
      local result = (results[row[1]] or {})[class[1]] or { passed = 0, count = 0 }
      all, passed = all + result.count, passed + result.passed
      cells[i + 1] = result.count == 0 and "" or result.passed == result.count and tostring(result.count) or
        ("%d of %d"):format(result.passed, result.count)
    end
    if results[row[1]] then print("| " .. table.concat(cells, " | ") .. " |") end
  end
  print(("\n%d of %d failed calls passed"):format(passed, all))
  return passed == all
end

local rows, results = require "system.failures.verbs", {}
math.randomseed(SEED)
for _, row in ipairs(rows) do
  local is_missing = row.needs and not pcall(require, row.needs)
  if is_missing then print(("skipped: %s: no %s"):format(row[1], row.needs)) end
  local is_wanted = only_verb == row[1] or not only_verb and (is_nightly or not row.nightly)
  if is_wanted and not is_missing then run_job(row, results) end
end
os.exit(print_table(rows, results) and 0 or 1)
