-- Runs a command with allreduce_watch.c in all of its processes, and reads the records of its ranks.
--
-- watched_run.run(command, options) returns
--   ranks     { { rank, size, seconds, opened = { [number of a file] = true } }... }: those on this machine
--   library   MPI_Get_library_version's first line
--   seconds   from MPI_Init to MPI_Finalize, of the slowest rank
--   cells     { { ranks, bytes, calls, ran = { { algorithm, inner, calls }... } }... }, ascending; no
--             algorithm: none was seen; `inner`: the one that did it in its place, or nil
--   unlisted  calls that a rank has no room for
-- It raises if the command cannot be started, fails, does not end in time, or runs no ranks.
local child_process = require "system.child_process"
local fail = require "base.fail"
local file = require "core.file"
local launcher = require "conversation.launcher"
local ordering = require "base.ordering"
local scratch = require "system.scratch"
local sequences = require "base.sequences"

local watched_run = {}

local GRACE = 10 -- seconds for a launcher that ends its ranks on a busy machine

local function library_path()
  local path = gentables.modules .. "/allreduce_watch.so"
  if not file.exists(path) then
    fail.input("no %s; it is built and installed with gentables on machines of 64 bits", path)
  elseif path:find("[ :]") then
    fail.input("%s: a path with a blank or a colon cannot be preloaded; install gentables elsewhere", path)
  end
  return path
end

-- The environment of a run that leaves its records in `folder`.
local function environment_of(folder, options)
  local preloaded = os.getenv("LD_PRELOAD")
  preloaded = preloaded and preloaded ~= "" and ":" .. preloaded or ""
  local own = { "LD_PRELOAD=" .. library_path() .. preloaded, "GENTABLES_WATCH_FOLDER=" .. folder,
    "GENTABLES_WATCH_FILES=" .. table.concat(options.files, "\n") }
  return sequences.join { own, options.environment }
end

-- ---- records ------------------------------------------------------------------------------------

local function whole(text) return math.tointeger(tonumber(text)) end

-- How the value of each key is read.
local reading = {
  library = function(of, value) of.library = value end,
  rank = function(of, value)
    local rank, size = value:match("^(%-?%d+) (%d+)$")
    of.rank, of.size = whole(rank), whole(size)
  end,
  seconds = function(of, value) of.seconds = tonumber(value) end,
  opened = function(of, value) of.opened[whole(value)] = true end,
  allreduce = function(of, value)
    local ranks, bytes, calls, algorithm, inner = value:match("^(%d+) (%d+) (%d+) (%S+) (%S+)$")
    of.calls[#of.calls + 1] = { ranks = whole(ranks), bytes = whole(bytes), calls = whole(calls),
      algorithm = algorithm ~= "-" and algorithm or nil, inner = inner ~= algorithm and inner or nil }
  end,
  unlisted = function(of, value) of.unlisted = whole(value) end,
}

-- The record of a rank; nil if it was cut off.
local function record_of(text)
  local of = { opened = {}, calls = {}, unlisted = 0 }
  for line in text:gmatch("([^\n]*)\n") do
    if line == "end" then return of end
    local key, value = line:match("^(%l+) (.*)$")
    if reading[key] then reading[key](of, value) end
  end
end

local function records_in(folder)
  local records = sequences.map(file.list(folder) or {}, function(name)
    local text = file.read(folder .. "/" .. name)
    return text and record_of(text)
  end)
  return ordering.sort(records, ordering.by "rank")
end

-- ---- all ranks ----------------------------------------------------------------------------------

-- Adds the calls of a rank to the cells, in calls of one rank.
local function add_calls(cells, by_key, record)
  for _, one in ipairs(record.calls) do
    local cell = sequences.entry(cells, by_key, ("%d %d"):format(one.ranks, one.bytes), function()
      return { ranks = one.ranks, bytes = one.bytes, ran = {}, calls = 0 }
    end)
    local same = sequences.find(cell.ran, function(ran)
      return ran.algorithm == one.algorithm and ran.inner == one.inner
    end)
    if not same then
      same = { algorithm = one.algorithm, inner = one.inner, calls = 0 }
      table.insert(cell.ran, same)
    end
    same.calls, cell.calls = same.calls + one.calls, cell.calls + one.calls
  end
end

-- The cells of all ranks. All ranks of a communicator make the same calls; those on other machines are not
-- watched.
local function cells_of(records)
  local cells, by_key = {}, {}
  for _, record in ipairs(records) do add_calls(cells, by_key, record) end
  for _, cell in ipairs(cells) do
    local function of_communicator(calls) return (calls + cell.ranks - 1) // cell.ranks end
    cell.calls = of_communicator(cell.calls)
    for _, ran in ipairs(cell.ran) do ran.calls = of_communicator(ran.calls) end
    ordering.sort(cell.ran, ordering.by("algorithm", "inner"))
  end
  return ordering.sort(cells, ordering.by("ranks", "bytes"))
end

local function result_of(records)
  local most = 0
  for _, record in ipairs(records) do most = math.max(most, record.unlisted) end
  return { ranks = records, library = records[1].library, cells = cells_of(records), unlisted = most,
    seconds = math.max(table.unpack(sequences.field(records, "seconds"))) }
end

-- ---- the command --------------------------------------------------------------------------------

-- Raises if the command did not end well.
local function raise_failure(command, ran, seconds)
  local shown = table.concat(command, " ")
  if ran.problem == "start" then
    fail.input("%s; the words after -- are a command, such as mpirun -n 2 PROGRAM", ran.reason)
  elseif ran.problem == "timeout" then
    fail.work("%s: did not end within %g s; --timeout SECONDS allows more", shown, seconds)
  elseif ran.errors:find("attempt to run as root", 1, true) then
    fail.input("%s: mpirun refuses to run as root; give it --allow-run-as-root, before its -n, or set"
      .. " OMPI_ALLOW_RUN_AS_ROOT=1 and OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1", shown)
  end
  local why = launcher.cause(ran.errors) or child_process.last_line(ran.errors)
  fail.work("%s: %s%s", shown, ran.reason, why and ": " .. why or "")
end

-- Options: `environment`, { "NAME=VALUE"... }; `files`, paths that ranks may open; `seconds`, the timeout.
function watched_run.run(command, options)
  local folder <close> = scratch.folder("gentables-prove")
  local ran = child_process.run(command, { seconds = options.seconds, grace = GRACE, returns_on_signal = true,
    environment = environment_of(folder.path, options), on_line = function() end })
  if ran.pid and not ran.well then launcher.remove_session_folder(ran.pid) end
  child_process.raise_if_interrupted()
  if not ran.well then raise_failure(command, ran, options.seconds) end
  local records = records_in(folder.path)
  if #records == 0 then
    fail.input("%s: no rank was seen from MPI_Init to MPI_Finalize; a program of MPI is required, linked " ..
      "with the MPI library dynamically, on this machine", table.concat(command, " "))
  end
  return result_of(records)
end

return watched_run
