-- Rows of several sources as files of ours, one for each number of ranks and nodes, for import and merge.
-- Files are read and written in C, because a Lua table for each row suits only small ones.
local cell_records = require "rows.cell_records"
local fail = require "base.fail"
local file = require "core.file"
local folder_lock = require "rows.folder_lock"
local lists = require "lists.lists"
local provenance = require "rows.provenance"
local rank_placement = require "lists.rank_placement"
local rows = require "core.rows"
local sequences = require "base.sequences"

local regroup = {}

-- The arch in the name of a rows file; nil for other names.
function regroup.arch_of(path)
  local _, _, arch = rank_placement.of_file_name(path)
  return arch
end

-- The group of rows of `size` ranks on `nodes` nodes in a list of groups, which it joins if it is new.
local function group_of(groups, size, nodes)
  nodes = nodes or 1
  for _, of_size in ipairs(groups) do
    if of_size.world_size == size and of_size.nodes == nodes then return of_size end
  end
  groups[#groups + 1] = { world_size = size, nodes = nodes, paths = {}, records = {}, count = 0,
    missing = 0 }
  return groups[#groups]
end

local function sort(groups)
  table.sort(groups, rank_placement.before)
  return groups
end

-- Benchmark files by their number of ranks and nodes: { { world_size =, nodes =, paths =, count =,
-- missing = }... }.
local function group(paths)
  local read = fail.unless(rows.read(paths))
  local groups, missing = {}, {}
  for _, entry in ipairs(read:missing()) do missing[entry.path] = entry.count end
  for _, entry in ipairs(read:files()) do
    if not entry.world_size then fail.input("%s: no row has a time; leave the file out", entry.path) end
    local of_size = group_of(groups, entry.world_size, entry.nodes)
    of_size.paths[#of_size.paths + 1] = entry.path
    of_size.count = of_size.count + entry.count
    of_size.missing = of_size.missing + (missing[entry.path] or 0)
  end
  return sort(groups), read
end

-- Reads benchmark files. Returns { { world_size =, nodes =, paths =, text =, count =, missing = }... }, with
-- the text in our columns, sorted. Two rows of the same cell and strategy are an error that names both lines.
function regroup.files(paths)
  local groups, read = group(paths)
  for _, of_size in ipairs(groups) do
    local part = #groups == 1 and read or fail.unless(rows.read(of_size.paths))
    of_size.text = fail.unless(part:text())
  end
  return groups
end

-- Raises an error if two records are of one cell and strategy. `where`: path and line of a record.
local function check_single(records)
  local seen = {}
  for _, record in ipairs(records) do
    local key = cell_records.key(record)
    if seen[key] then
      fail.input("%s: the same cell and strategy, %s, as in %s; keep one of them", record.where,
        record.strategy, seen[key].where)
    end
    seen[key] = record
  end
end

-- Like regroup.files, for records; each has `where`.
function regroup.records(records)
  check_single(records)
  local groups = {}
  for _, record in ipairs(records) do
    local of_size = group_of(groups, record.world_size, record.nodes)
    of_size.count = of_size.count + 1
    of_size.records[of_size.count] = record
  end
  for _, of_size in ipairs(sort(groups)) do
    of_size.text = fail.unless(rows.text(of_size.records[1].where, of_size.records))
  end
  return groups
end

-- The path for the rows of each group: --out is a folder, or, for one group, a file. Returns the paths, and
-- the arch in their names.
function regroup.paths(groups, out, arch)
  local tp, nodes, named_arch = rank_placement.of_file_name(out)
  local words = rank_placement.size_of
  if out:find("%.csv$") then
    if #groups > 1 then
      local sizes = sequences.map(groups, words)
      fail.input("--out %s: the rows are of TP %s; name a folder", out, table.concat(sizes, ", "))
    elseif tp and (tp ~= groups[1].world_size or nodes ~= groups[1].nodes) then
      fail.input("--out %s: the rows are of TP %s", out, words(groups[1]))
    elseif arch and named_arch and arch ~= named_arch then
      fail.input("--out %s: --arch is %s", out, arch)
    end
    return { out }, arch or named_arch
  end
  if not arch then fail.input("--out %s is a folder; --arch names the files in it", out) end
  local folder = out:gsub("(.)/+$", "%1")
  return sequences.map(groups, function(of_size)
    return ("%s/%s.csv"):format(folder, rank_placement.file_name(of_size.world_size, of_size.nodes, arch))
  end), arch
end

-- The folder `out`, or the folder of the file `out`.
local function folder_of(out)
  local head = out:find("%.csv$") and (out:match("^(.*)/[^/]*$") or ".") or out
  return head == "" and "/" or head
end

-- Locks the folder of `out` if it exists: see folder_lock.take.
function regroup.lock(out) return folder_lock.take(folder_of(out)) end

-- Makes the folder `out`, or the folder of the file `out`, if it is missing.
function regroup.make_folder(out)
  fail.unless_done(file.make_folder(folder_of(out)))
end

-- Raises an error if `arch` is neither nil nor an arch.
function regroup.check_arch(arch)
  if arch and not lists.arch(arch) then
    fail.input("--arch %s: unknown arch; valid: host, host-NAME, smNN, smNN-loopback", arch)
  end
  return arch
end

-- Writes rows and their provenance, and prints the file names. Raises if a sweep is measuring these rows. The
-- caller has locked the folder.
function regroup.write(path, of_size, record)
  local _ <close> = folder_lock.of_rows(path)
  fail.unless_done(provenance.write(path, of_size.text, record))
  local left_out = of_size.missing > 0 and (", %d without a time left out"):format(of_size.missing) or ""
  io.stdout:write(("wrote %s: %d rows%s, and %s\n"):format(path, of_size.count, left_out,
    provenance.path_of(path):match("[^/]*$")))
end

return regroup
