-- Rows of several sources as files of ours, one for each number of ranks: what import and merge share. Large
-- files go through C; a row for each Lua table is for small ones.
local fail = require "base.fail"
local file = require "core.file"
local lists = require "lists.lists"
local plan = require "rows.cells"
local provenance = require "rows.provenance"
local rows = require "core.rows"

local joined = {}

-- The arch and TP size that the name of a rows file says; nil where it is another name.
function joined.of_name(path)
  local tp, arch = path:match("benchmark%.tp(%d+)%.([^/]+)%.csv$")
  return arch, math.tointeger(tonumber(tp))
end

-- The group of rows of `size` ranks in a list of groups; made where it is not there.
local function group_of(groups, size)
  for _, of_size in ipairs(groups) do
    if of_size.world_size == size then return of_size end
  end
  groups[#groups + 1] = { world_size = size, paths = {}, records = {}, count = 0, missing = 0 }
  return groups[#groups]
end

local function sort(groups)
  table.sort(groups, function(a, b) return a.world_size < b.world_size end)
  return groups
end

-- Benchmark files by their number of ranks: { { world_size =, paths =, count =, missing = }... }.
local function group(paths)
  local read = fail.unless(rows.read(paths))
  local groups, missing = {}, {}
  for _, entry in ipairs(read:missing()) do missing[entry.path] = entry.count end
  for _, entry in ipairs(read:files()) do
    if not entry.world_size then fail.input("%s: holds no row with a time; leave it out", entry.path) end
    local of_size = group_of(groups, entry.world_size)
    of_size.paths[#of_size.paths + 1] = entry.path
    of_size.count = of_size.count + entry.count
    of_size.missing = of_size.missing + (missing[entry.path] or 0)
  end
  return sort(groups), read
end

-- Reads benchmark files. Returns { { world_size =, paths =, text =, count =, missing = }... }: the text in
-- our columns, sorted. The same cell and strategy twice raises, with both places.
function joined.files(paths)
  local groups, read = group(paths)
  for _, of_size in ipairs(groups) do
    local part = #groups == 1 and read or fail.unless(rows.read(of_size.paths))
    of_size.text = fail.unless(part:text())
  end
  return groups
end

-- Raises where two records are of one cell and strategy. `where`: path and line of a record.
local function check_single(records)
  local seen = {}
  for _, record in ipairs(records) do
    local key = plan.key(record)
    if seen[key] then
      fail.input("%s: the same cell and strategy, %s, as in %s; one time each would be right", record.where,
        record.strategy, seen[key].where)
    end
    seen[key] = record
  end
end

-- The same for records, each with `where`.
function joined.records(records)
  check_single(records)
  local groups = {}
  for _, record in ipairs(records) do
    local of_size = group_of(groups, record.world_size)
    of_size.count = of_size.count + 1
    of_size.records[of_size.count] = record
  end
  for _, of_size in ipairs(sort(groups)) do
    of_size.text = fail.unless(rows.text(of_size.records[1].where, of_size.records))
  end
  return groups
end

-- Where the rows of each group go: --out is a file where there is one group, or else a folder. Returns paths,
-- and the arch that their names say.
function joined.places(groups, out, arch)
  local named_arch, tp = joined.of_name(out)
  if out:find("%.csv$") then
    if #groups > 1 then
      local sizes = {}
      for i, of_size in ipairs(groups) do sizes[i] = of_size.world_size end
      fail.input("--out %s: there are rows of TP %s; a folder would be right", out, table.concat(sizes, ", "))
    elseif tp and tp ~= groups[1].world_size then
      fail.input("--out %s: the rows are of TP %d", out, groups[1].world_size)
    elseif arch and named_arch and arch ~= named_arch then
      fail.input("--out %s: --arch is %s", out, arch)
    end
    return { out }, arch or named_arch
  end
  if not arch then fail.input("--out %s is a folder; --arch names the files in it", out) end
  local paths = {}
  for i, of_size in ipairs(groups) do
    paths[i] = ("%s/benchmark.tp%d.%s.csv"):format(out:gsub("(.)/+$", "%1"), of_size.world_size, arch)
  end
  return paths, arch
end

-- Makes the folder that `out` is, if it is none, or the one that it is in.
function joined.make_folder(out)
  local folder = out:find("%.csv$") and out:match("^(.*)/[^/]*$") or not out:find("%.csv$") and out
  if not folder then return end
  local made, message = file.make_folder(folder)
  if not made then fail.work("%s", message) end
end

-- Raises unless `arch`, if there is one, is an arch.
function joined.check_arch(arch)
  if arch and not lists.arch(arch) then
    fail.input("--arch %s: no such arch; host, host-NAME, smNN or smNN-loopback would be right", arch)
  end
  return arch
end

-- Writes rows and their provenance; says so.
function joined.write(path, of_size, record)
  local written, message = provenance.write(path, of_size.text, record)
  if not written then fail.work("%s", message) end
  local left_out = of_size.missing > 0 and (", %d without a time left out"):format(of_size.missing) or ""
  io.stdout:write(("wrote %s: %d rows%s, and %s\n"):format(path, of_size.count, left_out,
    provenance.path_of(path):match("[^/]*$")))
end

return joined
