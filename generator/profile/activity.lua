-- GPU activity of a run, in one form: ranks with their kernels, copies, collectives, steps and GEMMs, from
-- torch-profiler traces (core.activity) and nsys SQLite exports (nsys.lua).
--
--   activity.load(paths) -> list of ranks. A file is a rank; a file with several GPUs is a rank for each.
--   rank.file, rank.label    its name in errors
--   rank.number              of the run, if known; rank.device, rank.process: its GPU and process
--   rank.kernels, .copies, .sets   columns { start, stop, name, device, stream, bytes }, by start, in ns;
--                            bytes -1: unknown. kernels.communicates: whether it is communication
--   rank.collectives         a list: each kernel that communicates { start, stop, name, group, group_size,
--                            bytes }; nil: unknown
--   rank.steps               columns { start, stop }: the marks of steps, on the host
--   rank.gemms, rank.siblings      the file's GEMM operations, and the number of its ranks
--
-- Unreadable input raises, in one line that names the file.
local collective = require "profile.collective"
local communication = require "lists.communication"
local fail = require "base.fail"
local json = require "codec.json"
local optional = require "base.optional"
local ordering = require "base.ordering"
local sequences = require "base.sequences"

local activity = {}

-- The columns of an event list.
local columns = { "start", "stop", "name", "device", "stream", "bytes", "process" }

-- The module of this name; raises if this gentables was built without its library.
local function need(module, library)
  return optional(module) or
    fail.work("profiler files need %s, and this gentables was built without %s", module, library)
end

-- The shapes of an operation's arguments, from JSON without blanks; nil unless every argument has a shape of
-- plain numbers, or no shape. Lists of tensors have other shapes.
local function shapes_in(text)
  local rest = text:gsub("%[[-%d,]*%]", "")
  return rest:find("^%[,*%]$") and json.decode(text) or nil
end

local function read_file(path)
  local reader = require "core.activity"
  local format = fail.unless(reader.format(path))
  if path:find("%.nsys%-rep$") or path:find("%.qdrep$") then
    fail.input("%s: Nsight's own format; nsys export --type sqlite makes a file that can be read", path)
  end
  if format == "sqlite" then
    return require("profile.nsys").read(path, need("core.sqlite", "SQLite"))
  end
  local read = fail.unless(reader.read(path))
  for _, gemm in ipairs(read.gemms) do gemm.dims = gemm.dims and shapes_in(gemm.dims) end
  return read
end

-- The same columns with only those events for which `keep(i)` returns true; `taken[i]` is an event's old
-- index.
local function filter(list, keep)
  local out, taken = {}, {}
  for i = 1, #list.start do
    if keep(i) then taken[#taken + 1] = i end
  end
  for _, column in ipairs(columns) do
    local from, to = list[column], {}
    if from then
      for k = 1, #taken do to[k] = from[taken[k]] end
      out[column] = to
    end
  end
  return out, taken
end

-- Names of the marks of steps; of several kinds only the first that occurs counts, because they enclose each
-- other.
local step_names = { "^profilerstep#%d+$", "^step[%s_:#-]*%d+$", "^iteration[%s_:#-]*%d+$",
  "^iter[%s_:#-]*%d+$" }

local function steps_among(marks)
  for _, pattern in ipairs(step_names) do
    local steps = filter(marks, function(i) return marks.name[i]:lower():find(pattern) ~= nil end)
    if #steps.start > 0 then return steps end
  end
  return { start = {}, stop = {} }
end

-- Each GPU of a file, as { device, process }, in order of appearance.
local function gpus_of(list)
  local gpus, of_key = {}, {}
  for i = 1, #list.start do
    local process = list.process and list.process[i]
    local key = process and (process .. "/" .. list.device[i]) or list.device[i]
    sequences.entry(gpus, of_key, key, function() return { device = list.device[i], process = process } end)
  end
  return gpus
end

local function is_of(gpu, list)
  return function(i)
    return list.device[i] == gpu.device and (not gpu.process or list.process[i] == gpu.process)
  end
end

-- Adds which kernels communicate, and the known metadata of each.
local function add_collectives(rank, described, taken)
  local kernels, communicates = rank.kernels, {}
  rank.collectives = {}
  for i = 1, #kernels.start do
    local name = kernels.name[i]
    communicates[i] = communication.of_kernel(name) ~= false
    if communicates[i] then
      local call = collective.describe(name, described[taken and taken[i] or i])
      call.start, call.stop = kernels.start[i], kernels.stop[i]
      table.insert(rank.collectives, call)
    end
  end
  kernels.communicates = communicates
end

local function steps_of(gpu, steps)
  if not gpu.process or not steps.process then return steps end
  return (filter(steps, function(i) return steps.process[i] == gpu.process end))
end

-- The rank of one GPU of a file.
local function make_rank(path, read, gpu, siblings)
  local rank = { file = path, label = path, number = read.rank, world_size = read.world_size,
    device = gpu.device, process = gpu.process, gemms = read.gemms, siblings = siblings }
  local taken
  rank.kernels, rank.copies, rank.sets = read.kernels, read.copies, read.sets
  if siblings > 1 then
    rank.label = ("%s (GPU %d%s)"):format(path, gpu.device,
      gpu.process and (" of process " .. gpu.process) or "")
    rank.number = nil
    rank.kernels, taken = filter(read.kernels, is_of(gpu, read.kernels))
    rank.copies = filter(read.copies, is_of(gpu, read.copies))
    rank.sets = filter(read.sets, is_of(gpu, read.sets))
  end
  rank.steps = steps_of(gpu, read.steps)
  add_collectives(rank, read.collectives, taken)
  return rank
end

local function ranks_of(path, out)
  local read = read_file(path)
  if read.left_out > 0 then
    fail.note("%s: %d events without usable times are left out", path, read.left_out)
  end
  if (read.negative or 0) > 0 then
    fail.note("%s: %d durations below zero are taken as zero", path, read.negative)
  end
  read.steps = steps_among(read.marks)
  local gpus = gpus_of(#read.kernels.start > 0 and read.kernels or read.copies)
  if #gpus == 0 then fail.input("%s: no GPU events: no kernel and no copy in it", path) end
  for _, gpu in ipairs(gpus) do out[#out + 1] = make_rank(path, read, gpu, #gpus) end
end

-- Checks that files are of one run: no rank twice, and the same number of ranks in all.
local function check_run(ranks)
  local of_number, sized = {}, nil
  for _, rank in ipairs(ranks) do
    local other = rank.number and of_number[rank.number]
    if other then
      fail.input("%s: has rank %d, as %s does; give files of different ranks of one run", rank.file,
        rank.number, other.file)
    end
    if rank.number then of_number[rank.number] = rank end
    if sized and rank.world_size and rank.world_size ~= sized.world_size then
      fail.input("%s: is of a run of %d ranks, %s of %d; give files of one run", rank.file,
        rank.world_size, sized.file, sized.world_size)
    end
    if rank.world_size then sized = rank end
  end
end

function activity.load(paths)
  local ranks, seen = {}, {}
  for _, path in ipairs(paths) do
    if seen[path] then fail.input("%s: given twice; give each rank's file once", path) end
    seen[path] = true
    ranks_of(path, ranks)
  end
  check_run(ranks)
  return ranks
end

-- The files of ranks, as a list for JSON.
function activity.files(ranks)
  local files = json.array {}
  for _, rank in ipairs(ranks) do ordering.add_new(files, { rank.file }) end
  return files
end

return activity
