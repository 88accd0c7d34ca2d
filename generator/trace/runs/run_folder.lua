-- Finds the traces of a run: a sweep, one configuration of it, or files with the rank in their names. It
-- opens, moves and changes no trace. Digests (trace/runs/trace_digest.lua) stand for their traces.
--
--   [experiments/]sweep_*/{T}thread/nccl_{C}channels/torch_profiler/rank{R}/*.json[.gz|.zst]
--   *rank_{N}* (rank-N, rankN, rank[N]) in one folder
--
-- Files of a folder named *merged.json* are results of gentables trace merge, not traces of a rank: they are
-- left out.
--
-- run_folder.find finds them, run_folder.select filters, run_folder.check compares the facts in names with
-- those in files.
local fail = require "base.fail"
local file = require "core.file"
local ordering = require "base.ordering"
local quantities = require "base.quantities"
local sequences = require "base.sequences"
local trace_digest = require "trace.runs.trace_digest"

local run_folder = {}

local EXTENSIONS = { "%.json$", "%.json%.gz$", "%.json%.zst$" }
local RANK_FOLDER = { "^rank[_-]?(%d+)$", "^rank%[(%d+)%]$" }
local PROFILER = "torch_profiler" -- the folder of the rank folders
local RANK_IN_NAME = { "rank[_-]?(%d+)", "rank%[(%d+)%]" }

local function first_match(text, patterns)
  return sequences.first(patterns, function(pattern) return text:match(pattern) end)
end

-- The name or path of the trace of a digest; nil: the name is not that of a digest.
local function trace_of_digest(name)
  return name:sub(-#trace_digest.ENDING) == trace_digest.ENDING and name:sub(1, -#trace_digest.ENDING - 1)
    or nil
end

local function is_trace_name(name) return first_match(trace_of_digest(name) or name, EXTENSIONS) ~= nil end

local function is_merged(name) return name:find("merged%.json") ~= nil end

local function base_name(path) return path:match("([^/]+)/*$") or path end

local function parent_of(path)
  return path:match("^(.*[^/])/+[^/]+/*$") or (path:match("^/") and "/" or ".")
end

-- Without slashes at the end, so that paths made from it look as written.
local function trimmed(path) return #path > 1 and path:gsub("/+$", "") or path end

local function is_folder(path) return file.status(path) == "folder" end

-- The names in a folder, sorted; numbers in them by value, so that rank10 comes after rank9.
local function sorted_names(folder)
  local names = fail.unless(file.list(folder))
  local keys = {}
  for _, name in ipairs(names) do
    keys[name] = name:gsub("%d+", function(digits) return ("%012d"):format(tonumber(digits) or 0) end)
  end
  table.sort(names, function(a, b)
    if keys[a] ~= keys[b] then return keys[a] < keys[b] end
    return a < b
  end)
  return names
end

-- ---- facts in names ----------------------------------------------------------------------------

-- The rank in a path: in the file's name, or else in its folder's; nil if neither has one.
function run_folder.rank_of(path)
  local rank = first_match(base_name(path), RANK_IN_NAME) or
    first_match(base_name(parent_of(path)), RANK_FOLDER)
  return math.tointeger(tonumber(rank))
end

local function threads_of(name) return math.tointeger(tonumber(name:match("^(%d+)threads?$"))) end
local function channels_of(name) return math.tointeger(tonumber(name:match("^nccl_(%d+)channels?$"))) end

-- Threads and channels of a path's configuration, if the path has them.
local function configuration_of(path)
  local threads, channels
  for part in path:gmatch("[^/]+") do
    threads = threads_of(part) or threads
    channels = channels_of(part) or channels
  end
  return threads, channels
end

-- The part of a path from the first folder that names threads, channels, a rank or the profiler; or only the
-- file's name.
function run_folder.place(path)
  local parts = {}
  for part in path:gmatch("[^/]+") do
    local names = threads_of(part) or channels_of(part) or part == PROFILER or first_match(part, RANK_FOLDER)
    if #parts > 0 or names then parts[#parts + 1] = part end
  end
  return #parts > 0 and table.concat(parts, "/") or base_name(path)
end

-- The name of a configuration in file names and messages.
function run_folder.name(configuration)
  local parts = {}
  if configuration.threads then parts[#parts + 1] = configuration.threads .. "thread" end
  if configuration.channels then parts[#parts + 1] = configuration.channels .. "ch" end
  return #parts > 0 and table.concat(parts, "_") or base_name(configuration.folder)
end

-- ---- finding -----------------------------------------------------------------------------------

local function trace_files_in(folder, trace_name)
  return sequences.map(sorted_names(folder), function(name)
    local path, wanted = folder .. "/" .. name, is_trace_name(name) and not is_merged(name)
    if trace_name then wanted = is_trace_name(name) and (trace_of_digest(name) or name) == trace_name end
    return wanted and not is_folder(path) and path or nil
  end)
end

-- The entry of a file, a trace or a digest: { path (of the trace), rank, digest (its path), is_digest (the
-- trace itself is not given) }. A trace has the digest beside it.
function run_folder.entry(path)
  local trace, digest = trace_of_digest(path), path .. trace_digest.ENDING
  if trace then return { path = trace, rank = run_folder.rank_of(path), digest = path, is_digest = true } end
  return { path = path, rank = run_folder.rank_of(path), digest = file.exists(digest) and digest or nil }
end

-- The entries of files, without digests of traces that are among them.
local function entries_of(paths, threads, channels)
  local there = sequences.set(paths)
  return sequences.map(paths, function(path)
    if there[trace_of_digest(path)] then return nil end
    return sequences.merged(run_folder.entry(path), { threads = threads, channels = channels })
  end)
end

-- The folders in a folder of which is_one(name) is true, in order of their names.
local function folders_in(folder, is_one)
  return sequences.map(sorted_names(folder), function(name)
    local path = folder .. "/" .. name
    return is_one(name) and is_folder(path) and path or nil
  end)
end

local function is_of_rank(name) return first_match(name, RANK_FOLDER) end
local function is_sweep(name) return name:find("^sweep_") end

-- The traces below a configuration's folder: in rank folders, or as separate files.
local function files_of(folder, trace_name)
  if is_folder(folder .. "/" .. PROFILER) then folder = folder .. "/" .. PROFILER end
  local files = {}
  for _, path in ipairs(folders_in(folder, is_of_rank)) do
    sequences.append(files, trace_files_in(path, trace_name))
  end
  return sequences.append(files, trace_files_in(folder, trace_name))
end

local function new_configuration(folder, paths)
  local threads, channels = configuration_of(folder)
  return { folder = folder, threads = threads, channels = channels,
    files = entries_of(paths, threads, channels) }
end

local function add_channels(out, folders, trace_name)
  for _, path in ipairs(folders) do out[#out + 1] = new_configuration(path, files_of(path, trace_name)) end
end

-- The only sweep below `experiments`.
local function sweep_in(folder)
  local sweeps = folders_in(folder, is_sweep)
  if #sweeps > 1 then
    fail.input("%s: contains %d sweeps; give one of them: %s", folder, #sweeps,
      table.concat(sweeps, ", "))
  end
  return sweeps[1]
end

-- One folder -> its configurations, and the folder of the sweep (nil: none).
local function find_in(folder, trace_name)
  local out, of_threads, of_channels = {}, folders_in(folder, threads_of), folders_in(folder, channels_of)
  for _, path in ipairs(of_threads) do add_channels(out, folders_in(path, channels_of), trace_name) end
  if #of_threads > 0 then return out, folder end
  add_channels(out, of_channels, trace_name)
  if #of_channels > 0 then return out, parent_of(folder) end
  local sweep = sweep_in(folder)
  if sweep then return find_in(sweep, trace_name) end
  out[1] = new_configuration(folder, files_of(folder, trace_name))
  return out, nil
end

-- Files that are given one by one: those with the same threads and channels are a configuration.
local function of_files(paths)
  local out, known = {}, {}
  for _, path in ipairs(paths) do
    local threads, channels = configuration_of(path)
    local configuration = sequences.entry(out, known, ("%s %s"):format(threads, channels), function()
      return { folder = parent_of(path), threads = threads, channels = channels, paths = {} }
    end)
    table.insert(configuration.paths, path)
  end
  for _, configuration in ipairs(out) do
    configuration.files = entries_of(configuration.paths, configuration.threads, configuration.channels)
  end
  return out
end

local function by_rank(a, b)
  if a.rank ~= b.rank then return (a.rank or math.maxinteger) < (b.rank or math.maxinteger) end
  return a.path < b.path
end

-- The path of an entry as it was given.
function run_folder.given(entry) return entry.is_digest and entry.digest or entry.path end

-- Raises if a configuration has a digest without its trace. why: the command, and its reason to need traces.
function run_folder.refuse_digests(configurations, why)
  for _, configuration in ipairs(configurations) do
    local entry = sequences.find(configuration.files, function(one) return one.is_digest end)
    if entry then fail.input("%s: is a digest; %s", entry.digest, why) end
  end
end

-- Two files of one rank: the intended one is unknown.
local function duplicate(configuration)
  local seen = {}
  for _, entry in ipairs(configuration.files) do
    local other = entry.rank and seen[entry.rank]
    if other then
      return ("%s and %s are both of rank %d; choose one of them with --trace-name NAME")
        :format(run_folder.given(other), run_folder.given(entry), entry.rank)
    end
    if entry.rank then seen[entry.rank] = entry end
  end
end

-- Raises if a folder without traces is one of --digests (trace/digests/digest_folder.lua).
function run_folder.refuse_own_digests(folder)
  local is_own = is_folder(folder) and sequences.any(sorted_names(folder), function(name)
    local trace = name:match("^(.*)%.digest%.%x+$")
    return trace and is_trace_name(trace)
  end)
  if not is_own then return end
  fail.input("%s: is a folder of --digests, which is given beside its traces; gentables trace digest TRACES"
    .. " --out DIR makes digests that can be given in place of traces", folder)
end

-- paths (a folder, or files) -> {
--   configurations = { { threads, channels, folder, files = { an entry, with threads and channels... },
--     problem = the reason why it cannot be processed } ... }, sweep = folder | nil }
-- Threads, channels and rank are nil if no name has them. Raises if there are no traces.
function run_folder.find(paths, options)
  options = options or {}
  local configurations, sweep, named = {}, nil, {}
  for _, given in ipairs(paths) do
    local path = trimmed(given)
    if fail.unless(file.status(path)) == "folder" then
      local found, root = find_in(path, options.trace_name)
      sweep = root or sweep
      sequences.append(configurations, found)
    else
      named[#named + 1] = path
    end
  end
  sequences.append(configurations, of_files(named))
  table.sort(configurations, ordering.by("threads", "channels", "folder"))
  for _, configuration in ipairs(configurations) do
    table.sort(configuration.files, by_rank)
    configuration.problem = duplicate(configuration)
    if #configuration.files == 0 then
      configuration.problem = configuration.folder .. ": no trace here; rank{R}/*.json, *.json.gz or "
        .. "*.json.zst below it, or files named *rank_{N}*, are required"
    end
  end
  if not sequences.any(configurations, function(configuration) return #configuration.files > 0 end) then
    for _, configuration in ipairs(configurations) do run_folder.refuse_own_digests(configuration.folder) end
    fail.input("%s: no trace here; {T}thread/nccl_{C}channels/torch_profiler/rank{R}/*.json[.gz|.zst], "
      .. "or files named *rank_{N}*, are required", paths[1])
  end
  return { configurations = configurations, sweep = sweep }
end

-- ---- filters -----------------------------------------------------------------------------------

-- "256,512", "0-3 7" or a list of such -> { [256] = true, ... }; nil stays nil.
function run_folder.numbers(text, option)
  if text == nil then return nil end
  local set = {}
  for part in (type(text) == "table" and table.concat(text, ",") or text):gmatch("[^,%s]+") do
    local from, to = part:match("^(%d+)%-(%d+)$")
    from, to = tonumber(from or part:match("^%d+$")), tonumber(to or part:match("^%d+$"))
    if not from or from > to or to - from > 1000000 then
      fail.input("--%s: %s is not a number; valid: for example 256, 256,512 or 0-7", option, part)
    end
    for number = from, to do set[number] = true end
  end
  if next(set) == nil then fail.input("--%s is empty; valid: for example 256, 256,512 or 0-7", option) end
  return set
end

-- Keeps the configurations and ranks that pass `filters` = { threads, channels, ranks = set | nil }. If none
-- passes, raises with the existing ones.
function run_folder.select(found, filters)
  local kept, there = {}, { threads = {}, channels = {}, ranks = {} }
  for _, configuration in ipairs(found.configurations) do
    if configuration.threads then there.threads[configuration.threads] = true end
    if configuration.channels then there.channels[configuration.channels] = true end
    local passes = (not filters.threads or filters.threads[configuration.threads])
      and (not filters.channels or filters.channels[configuration.channels])
    local files = {}
    for _, entry in ipairs(configuration.files) do
      if entry.rank then there.ranks[entry.rank] = true end
      if not filters.ranks or filters.ranks[entry.rank] then files[#files + 1] = entry end
    end
    if passes and (#files > 0 or #configuration.files == 0) then
      configuration.all_files, configuration.files = configuration.files, files
      kept[#kept + 1] = configuration
    end
  end
  if #kept > 0 then return { configurations = kept, sweep = found.sweep } end
  local has = sequences.map({ "threads", "channels", "ranks" }, function(name)
    local list = ordering.sorted_keys(there[name])
    return #list > 0 and name .. " " .. table.concat(list, ", ") or nil
  end)
  fail.input("no trace passes --threads, --channels and --ranks; valid: %s", table.concat(has, "; "))
end

-- ---- facts in files ----------------------------------------------------------------------------

-- The number of ranks in most files (world_size); of two that are equally frequent the smaller one.
local function usual_world_size(infos)
  local count = {}
  for _, info in pairs(infos) do
    if info.world_size then count[info.world_size] = (count[info.world_size] or 0) + 1 end
  end
  local best = sequences.largest(ordering.sorted_keys(count), function(size) return count[size] end)
  return best, best and count[best]
end

-- Gives a rank to files without one in their names: that of distributedInfo, else their index.
local function complete_ranks(files, infos)
  for i, entry in ipairs(files) do
    if not entry.rank then entry.rank = infos[i] and infos[i].rank or i - 1 end
  end
end

-- A path in notes: the part after the configuration's folder.
local function below(configuration, path)
  local folder = configuration.folder .. "/"
  return path:sub(1, #folder) == folder and path:sub(#folder + 1) or base_name(path)
end

local function foreign(configuration, files, infos, usual, notes)
  local left_out = {}
  for i, entry in ipairs(files) do
    local size = infos[i] and infos[i].world_size
    if size and size ~= usual then
      left_out[i] = true
      notes[#notes + 1] = ("%s: is a rank of %d, the others are of %d; left out of comparisons over ranks, "
        .. "but part of a merged trace"):format(below(configuration, entry.path), size, usual)
    end
  end
  return left_out
end

-- The steps of most files, as texts; of two that are equally frequent those of the first file.
local function usual_steps(texts)
  local count, best = {}, nil
  for _, text in pairs(texts) do count[text] = (count[text] or 0) + 1 end
  for _, i in ipairs(ordering.sorted_keys(texts)) do
    if not best or count[texts[i]] > count[best] then best = texts[i] end
  end
  return best
end

-- Notes on files with other steps than most files; those with none of theirs are added to left_out.
local function mixed_steps(configuration, infos, left_out, notes)
  local texts, steps_of = {}, {}
  for i, info in pairs(infos) do
    if info.steps then
      texts[i] = quantities.ranges(info.steps)
      steps_of[texts[i]] = info.steps
    end
  end
  local usual = usual_steps(texts)
  for _, i in ipairs(ordering.sorted_keys(texts)) do
    if texts[i] ~= usual then
      local known = sequences.set(steps_of[usual])
      local common = sequences.filter(infos[i].steps, function(step) return known[step] end)
      if #common == 0 then left_out[i] = true end
      notes[#notes + 1] = ("%s: has steps %s, the others have %s; %s"):format(
        below(configuration, configuration.files[i].path), texts[i], usual,
        #common == 0 and "left out of comparisons over ranks, but part of a merged trace"
          or ("--steps %s selects common ones"):format((quantities.ranges(common):gsub(", ", ","))))
    end
  end
end

local function doubtful_ranks(configuration, files, infos, notes)
  local of_rank = {}
  for i, entry in ipairs(files) do
    local rank = infos[i] and infos[i].rank
    if rank and of_rank[rank] then
      notes[#notes + 1] = ("%s and %s both have rank %d in distributedInfo"):format(
        below(configuration, of_rank[rank].path), below(configuration, entry.path), rank)
    elseif rank and rank ~= entry.rank then
      notes[#notes + 1] = ("%s: its name has rank %d, its distributedInfo rank %d; the name counts"):format(
        below(configuration, entry.path), entry.rank, rank)
    end
    if rank then of_rank[rank] = of_rank[rank] or entry end
  end
end

local function missing_ranks(files, usual, notes)
  local there, most = {}, -1
  for _, entry in ipairs(files) do
    there[entry.rank] = true
    most = math.max(most, entry.rank)
  end
  local missing = {}
  for rank = 0, (usual or most + 1) - 1 do
    if not there[rank] then missing[#missing + 1] = rank end
  end
  if #missing > 0 then
    notes[#notes + 1] = (#missing == 1 and "rank %s of %s is missing" or "ranks %s of %s are missing"):format(
      quantities.ranges(missing), usual or most + 1 .. " at least")
  end
end

run_folder.below = below

-- The note on a file that failed with this message.
function run_folder.not_in_report(configuration, entry, message)
  for _, path in ipairs { entry.path, entry.digest } do
    if message:sub(1, #path + 2) == path .. ": " then message = message:sub(#path + 3) end
  end
  return ("%s: is not in this report: %s"):format(below(configuration, run_folder.given(entry)), message)
end

-- Compares a configuration's files with `infos` (infos[i]: of the i-th file, { rank, world_size } from
-- distributedInfo and steps, the numbers of its steps or nil; nil: not read). Returns notes (texts, with
-- paths below the configuration's folder) and the set of indices of files that cannot be compared with the
-- others. Fills in ranks that are missing in names.
function run_folder.check(configuration, infos)
  local files, notes = configuration.files, {}
  complete_ranks(files, infos)
  local usual = usual_world_size(infos)
  local left_out = foreign(configuration, files, infos, usual, notes)
  mixed_steps(configuration, infos, left_out, notes)
  doubtful_ranks(configuration, files, infos, notes)
  missing_ranks(configuration.all_files or files, usual, notes)
  return notes, left_out
end

return run_folder
