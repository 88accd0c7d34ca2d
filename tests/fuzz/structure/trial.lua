-- Shared by the lists of jobs: texts of the sources, and rows in which one file is mutated. And one run of
-- a job with a mutant, in limits, and its verdict.
--
--   local job = trial.prepare(row, folder)       -- row: see structure.lua
--   local ran = trial.run(job, name, mutant)     -- { code, err, signature, complaint }; complaint: nil or
--   text
--
-- A run must end with exit code 0, 1 or 2, within 20 s of processor time and 2 GiB of memory; if it fails,
-- with
-- lines on stderr that begin with `gentables: `. It leaves nothing in TMPDIR, no temporary file in out/, and
-- after exit code 2 no file at all; what it writes is whole.
local child_process = require "system.child_process"
local json = require "codec.json"
local file = require "core.file"
local system = require "core.system"

local trial = {}

function trial.text(name) return assert(file.read(os.getenv("SOURCE") .. "/" .. name)) end

-- A function job(row, files, name): the row with these files, of which `name` is mutated, by row.mutate or
-- else by `mutate`.
function trial.mutated_by(mutate)
  return function(row, files, name)
    row.files, row.targets, row.mutate = files, { name }, row.mutate or mutate
    return row
  end
end

local CPU_SECONDS, PATIENCE, MEMORY_KIB, FILE_BLOCKS = 20, 120, 2 << 20, 1 << 20
local MOST_LINE = 4200 -- bytes of a message: those of fail.lua, and the file's name
local MOST_SHOWN, MOST_LINES = 300, 5 -- bytes of a line, and lines, in a signature

-- A sanitizer maps terabytes.
local is_sanitized = assert(file.read(system.program())):find("__asan_init", 1, true) ~= nil
local limits = ("ulimit -c 0 -t %d -f %d%s"):format(CPU_SECONDS, FILE_BLOCKS,
  is_sanitized and "" or " -v " .. MEMORY_KIB)
-- Its descriptor 3 is the pipe that ends with it, and with all that it leaves behind.
local script = limits .. '; cd "$0" && exec "$@" 3>&1 >stdout 2>stderr'

local function write(path, text)
  local stream <close> = assert(io.open(path, "wb"))
  assert(stream:write(text))
end

local function write_in(folder, name, text)
  local path = folder .. "/" .. name
  assert(file.make_folder(path:match("^(.*)/")))
  write(path, text)
end

-- Empties the folders that a run writes to.
local function clear(job)
  for _, name in ipairs { "out", "tmp", "home" } do
    local path = job.folder .. "/" .. name
    file.remove_tree(path)
    assert(file.make_folder(path))
  end
  for name, text in pairs(job.row.files) do
    if name:find("^out/") or name:find("^home/") then write_in(job.folder, name, text) end
  end
end

function trial.prepare(row, folder)
  local job = { row = row, folder = folder, argv = { "/bin/sh", "-c", script, folder, system.program() } }
  file.remove_tree(folder)
  assert(file.make_folder(folder))
  for name, text in pairs(row.files) do write_in(folder, name, text) end
  for _, name in ipairs(row.programs or {}) do
    assert(os.execute(("chmod +x '%s/%s'"):format(folder, name)))
  end
  if row.program then job.argv[#job.argv] = row.program end
  table.move(row, 2, #row, #job.argv + 1, job.argv)
  job.environment = { "TMPDIR=" .. folder .. "/tmp", "HOME=" .. folder .. "/home", "LC_ALL=C",
    "XDG_CACHE_HOME=" .. folder .. "/home/cache" }
  for _, variable in ipairs(row.environment or {}) do table.insert(job.environment, variable) end
  return job
end

-- ---- verdict --------------------------------------------------------------------------------------

local forbidden = { "traceback", "Sanitizer", "runtime error:", "internal error", "bad argument #",
  "Assertion", "PANIC", "terminate called", "stack smashing" }

local function forbidden_words(job, ran)
  for _, words in ipairs(forbidden) do
    if ran.err:find(words, 1, true) then return "prints " .. words end
  end
  -- Errors of a Lua file of the user have its name in front.
  if ran.err:find("attempt to ", 1, true) and not ran.err:find("^gentables: in/[%w/]*%.lua:") then
    return "prints attempt to"
  end
  local signal = ran.err:match("killed by SIG%u+") or ran.err:match("on signal %d+")
  if signal and not job.row.crashes then return "a child is " .. signal end
end

local function unclear_message(job, ran)
  local count = 0
  local err = job.row.documented and ran.code > 0 and ran.err:match("[^\n]*\n?$") or ran.err
  for line in err:gmatch("[^\n]+") do
    if not line:find(": left out, ", 1, true) then count = count + 1 end -- a note in front of the message
    if not line:find("^gentables: ") then return "a line without gentables: in front" end
    if #line > MOST_LINE then return ("a message of %d bytes"):format(#line) end
    if line:find("%c") then return "a control character in a message" end
    if not utf8.len(line) and utf8.len(ran.mutant) then return "a part of a character in a message" end
  end
  if ran.code == 2 and count ~= 1 then return ("exit code 2 with %d lines on stderr"):format(count) end
  if ran.code == 1 and count == 0 and ran.out == "" then return "exit code 1 without a word" end
end

-- Paths of files below a folder, in a list.
local function files_below(folder, prefix, found)
  for _, name in ipairs(file.list(folder) or {}) do
    local path = folder .. "/" .. name
    if file.status(path) == "folder" then
      files_below(path, prefix .. name .. "/", found)
    else
      found[#found + 1] = prefix .. name
    end
  end
  return found
end

local LONG_INTEGER = ("%d"):rep(19)

-- Why a file that was written is not whole; nil if it is.
local function damage(path, text)
  -- simdjson takes no halves of surrogate pairs and no numbers beyond its types, which JSON has.
  local is_long = text:find(LONG_INTEGER) or text:find("%d[eE]%+?%d%d%d")
  local is_readable = not text:find("\\u[dD][89a-fA-F]") and not is_long
  if path:find("%.json$") and is_readable and not json.decode(text) then return "no JSON" end
  if path:find("%.html$") and not text:find("</html>%s*$") then return "its end is missing" end
  if path:find("%.csv$") and text:sub(-1) ~= "\n" then return "its last line has no end" end
end

local function bad_files(job, ran)
  local left = file.list(job.folder .. "/tmp")
  if #left > 0 then return "left in TMPDIR: " .. left[1] end
  for _, name in ipairs(files_below(job.folder .. "/out", "out/", {})) do
    local is_hidden = name:find("/%.[^/]*$") and not name:find("/%.lock$")
    if name:find("%.tmp") or is_hidden then return "a temporary file is left: " .. name end
    if not job.row.files[name] then
      if ran.code == 2 and not job.row.partial then return "exit code 2 after writing " .. name end
      local why = damage(name, file.read(job.folder .. "/" .. name) or "")
      if why then return ("%s: %s"):format(name, why) end
    end
  end
end

local function complaint(job, ran)
  if ran.problem == "timeout" then return not job.row.slow and "does not end" or nil end
  if not ran.code then return not (job.row.slow and ran.reason:find("SIGXCPU")) and ran.reason or nil end
  if ran.code > 2 then return ran.reason end
  local words = forbidden_words(job, ran)
  if words then return words end
  if not job.row.foreign then
    if ran.out:find("[\0-\8\11-\31\127]") then return "a control character on stdout" end
  end
  return not job.row.foreign and unclear_message(job, ran) or bad_files(job, ran)
end

-- A text without what differs between outcomes of a kind: numbers, values and names in other letters.
local function plain(text)
  return (text:sub(1, MOST_SHOWN):gsub('"[^"]*"', '""'):gsub("%d+", "0"):gsub("[\128-\255]+", "?"))
end

-- What an outcome has in common with others of its kind: its end and the first lines that it prints.
local function signature(ran)
  local lines = { ran.code or ran.reason }
  for _, text in ipairs { ran.err, ran.out } do
    local most = #lines + MOST_LINES
    for line in text:gmatch("[^\n]+") do
      if #lines < most then lines[#lines + 1] = plain(line) end
    end
  end
  return table.concat(lines, "\n")
end

-- Runs a job with `mutant` in place of its file `name` (nil: as it is).
function trial.run(job, name, mutant)
  clear(job)
  if name then write_in(job.folder, name, mutant) end
  local ended = child_process.run(job.argv, { seconds = job.row.slow or PATIENCE,
    environment = job.environment })
  local ran = { problem = ended.problem, reason = ended.reason, mutant = mutant or "",
    code = ended.well and 0 or tonumber((ended.reason or ""):match("^exit code (%d+)")),
    out = file.read(job.folder .. "/stdout") or "", err = file.read(job.folder .. "/stderr") or "" }
  ran.signature = signature(ran)
  ran.complaint = complaint(job, ran)
  if name then write_in(job.folder, name, job.row.files[name]) end
  return ran
end

-- The files that a job without a mutant leaves in out/, by name; for other jobs.
function trial.made(row, folder)
  local job = trial.prepare(row, folder)
  trial.run(job)
  local made = {}
  for _, name in ipairs(files_below(folder .. "/out", "out/", {})) do
    made[name] = assert(file.read(folder .. "/" .. name))
  end
  return made
end

return trial
