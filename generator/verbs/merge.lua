-- gentables merge: joins the rows of several files. Rejects rows of different archs, the same cell and
-- strategy twice, and, without --across-machines, rows of different machines, benches, launchers or limits.
local fail = require "base.fail"
local file = require "core.file"
local regroup = require "rows.regroup"
local lists = require "lists.lists"
local machines = require "machine.machines"
local provenance = require "rows.provenance"
local rank_placement = require "lists.rank_placement"

local merge = {}

merge.summary = "Joins rows of several runs; rejects rows that are not comparable."
merge.positional = { name = "FILE...", min = 1, max = math.huge, help = "benchmark files" }
merge.options = {
  { name = "out", value = "PATH", required = true,
    help = "FILE.csv; or a folder: benchmark.tp{N}[.nodes{M}].{arch}.csv" },
  { name = "arch", value = "ARCH", help = "arch of the rows (default: that in the files' names)" },
  { name = "across-machines", help = "join rows of different machines, benches and limits, too" },
}
merge.example = "gentables merge tables/host/benchmark.tp*.host.csv --out merged"

-- The facts of a file beside its rows: { path, arch, record }. `record` is nil without provenance.
local function describe(path)
  local json_path = provenance.path_of(path)
  local of_file = { path = path, arch = regroup.arch_of(path) }
  if file.exists(json_path) then
    of_file.record = fail.unless(provenance.read(json_path))
    if not provenance.describes(of_file.record, fail.unless(file.read(path))) then
      fail.input("%s: is not of the rows in %s; remove it if the rows were changed by hand",
        json_path, path)
    end
    of_file.arch = of_file.arch or of_file.record.arch
  end
  return of_file
end

local function check_archs(files, given)
  local first
  for _, entry in ipairs(files) do
    first = first or entry.arch and entry
    if entry.arch and entry.arch ~= (given or first.arch) then
      fail.input("%s: rows of %s, and %s; rows of one arch belong together", entry.path, entry.arch,
        given and ("--arch is " .. given) or ("%s is of %s"):format(first.path, first.arch))
    end
  end
  return given or first and first.arch
end

local function spans(entry) return rank_placement.spans(entry.record.nodes) end

-- Why the rows of two files are not comparable, as text; nil if no reason is known.
local function difference(a, b)
  if not a.record and not b.record then return nil end
  if not a.record or not b.record then
    local without = a.record and b or a
    return ("%s has no %s beside it, so the machine of its rows is unknown"):format(without.path,
      provenance.path_of(without.path):match("[^/]*$"))
  end
  if not machines.same(a.record.machine, b.record.machine) then
    return ("rows of %s, and %s has rows of %s, which differs in %s"):format(
      machines.describe(b.record.machine), a.path, machines.describe(a.record.machine),
      machines.differences(a.record.machine, b.record.machine))
  elseif not provenance.same(a.record.bench, b.record.bench)
    or spans(a) == spans(b) and a.record.fingerprint ~= b.record.fingerprint then
    return ("measured by another bench, launcher or limits than %s"):format(a.path)
  end
end

-- The first file that differs from one before it, and why; nil: none. Files are compared with all before
-- them, because the fingerprints of rows of one node and of several are not comparable.
local function first_difference(files)
  for i = 2, #files do
    for k = 1, i - 1 do
      local why = difference(files[k], files[i])
      if why then return files[i].path, why end
    end
  end
end

local function check_machines(files)
  local path, why = first_difference(files)
  if why then fail.input("%s: %s; --across-machines joins them nevertheless", path, why) end
end

-- The entries without a time, of all files of one number of ranks and nodes.
local function no_time_of(files, paths)
  local out = {}
  for _, entry in ipairs(files) do
    for _, path in ipairs(paths) do
      local of_file = path == entry.path and entry.record and entry.record.no_time or {}
      table.move(of_file, 1, #of_file, #out + 1, out)
    end
  end
  return out
end

-- The spec of the sweeps of these records if it was the same in all; else nil, and `generate` takes the grid
-- from the rows.
local function common_spec(records)
  local first = records[1] and records[1].spec
  for _, record in ipairs(records) do
    if not first or not record.spec or record.spec.hash ~= first.hash then return nil end
    if record.spec.keys then first = record.spec end
  end
  return first
end

-- The provenance of the rows of one number of ranks and nodes: that of the first file if all are comparable,
-- else a list of the machines of all files.
local function record_of(files, of_size, arch)
  local records = {}
  local base = { world_size = of_size.world_size, nodes = of_size.nodes > 1 and of_size.nodes or nil,
    arch = arch, no_time = no_time_of(files, of_size.paths) }
  for _, entry in ipairs(files) do
    if lists.contains(of_size.paths, entry.path) and entry.record then
      local derived = entry.record.derived
      if derived then base.derived = math.min(base.derived or derived, derived) end
      records[#records + 1] = entry.record
    end
  end
  base.spec = common_spec(records)
  local first = records[1]
  if first_difference(files) or not first then return provenance.merged(base, files) end
  base.fingerprint, base.machine, base.bench = first.fingerprint, first.machine, first.bench
  base.placement, base.date, base.network = first.placement, first.date, first.network
  return base
end

function merge.run(args)
  local lock <close> = regroup.lock(args.out) -- the files that are read may be written
  local files = {}
  for i, path in ipairs(args) do
    files[i] = describe(path)
  end
  local arch = check_archs(files, regroup.check_arch(args.arch))
  if not args.across_machines then check_machines(files) end
  local groups = regroup.files(table.move(args, 1, #args, 1, {}))
  local paths = regroup.paths(groups, args.out, arch)
  regroup.make_folder(args.out)
  local _ <close> = not lock and regroup.lock(args.out) or nil
  for i, of_size in ipairs(groups) do
    regroup.write(paths[i], of_size, record_of(files, of_size, arch))
  end
end

return merge
