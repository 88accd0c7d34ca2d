-- A folder of benchmark files of one arch: the files, their rows, provenance and spec; and the folders of
-- several SM versions. It chooses nothing. Wrong or missing input raises.
--
-- rows_folder.read(data_dir, arch, allow_loopback) gives { data_dir, arch, table_arch, arch_row, files,
--   spec, recorded_workload, refused, rows, cells, loopback }; `files` is a list of { tp, nodes, path,
--   provenance, spec }, `refused` one of the spec's placements without rows, { tp, nodes, provenance };
--   `cells` are those of the specs; `table_arch` is the arch that tables name: with `allow_loopback` that of
--   loopback rows.
local fail = require "base.fail"
local file = require "core.file"
local folder_spec = require "base.lazy" "rows.folder_spec"
local lists = require "lists.lists"
local machines = require "base.lazy" "machine.machines"
local provenance = require "base.lazy" "rows.provenance"
local rank_placement = require "lists.rank_placement"
local rows = require "core.rows"
local ordering = require "base.ordering"
local sequences = require "base.sequences"
local spec = require "base.lazy" "rows.spec"

local rows_folder = {}

-- A text that is the same for two files, or placements of a spec, if and only if they have the same ranks and
-- nodes.
local function placement_of(entry) return rank_placement.words(entry.tp or entry.world_size, entry.nodes) end

-- The benchmark files of the arch, by nodes and TP size; {} where there is none. With `allow_loopback`, those
-- of ranks on one GPU are used for placements without others.
function rows_folder.files(data_dir, arch, allow_loopback)
  local found, has = {}, {}
  local function add(wanted)
    for _, name in ipairs(fail.unless(file.list(data_dir))) do
      local tp, nodes, of_name = rank_placement.of_file_name(name)
      local entry = { tp = tp, nodes = nodes, path = data_dir .. "/" .. name }
      if of_name == wanted and not has[placement_of(entry)] then
        found[#found + 1], has[placement_of(entry)] = entry, true
      end
    end
  end
  add(arch)
  if allow_loopback then add(arch .. "-loopback") end
  return ordering.sort(found, ordering.by("nodes", "tp"))
end

-- The archs with rows in a folder, sorted.
function rows_folder.archs(data_dir)
  local seen = {}
  for _, name in ipairs(fail.unless(file.list(data_dir))) do
    local _, _, arch = rank_placement.of_file_name(name)
    if arch then seen[arch] = true end
  end
  return ordering.sorted_keys(seen)
end

-- The arch of the rows in a folder. `given`: that of --arch, or nil. Raises if the folder has rows of several
-- archs or of none; `other`: a file that could be there in place of rows, for the message, or nil;
-- `option_of(arch)`: the option that selects an arch (default: --arch).
function rows_folder.only_arch(data_dir, given, other, option_of)
  if given then return given end
  local archs = rows_folder.archs(data_dir)
  if #archs == 0 then
    fail.input("%s: %s benchmark.tp{N}.{arch}.csv; gentables sweep writes them", data_dir,
      other and ("neither %s nor"):format(other) or "no")
  elseif #archs > 1 then
    fail.input("%s: has rows of %s; %s is required", data_dir, table.concat(archs, ", "), option_of
      and table.concat(sequences.map(archs, option_of), " or ") or "--arch with one of them")
  end
  return archs[1]
end

local function find_files(data_dir, arch, allow_loopback)
  local found = rows_folder.files(data_dir, arch, allow_loopback)
  if #found == 0 then
    fail.input("%s: has no benchmark.tp{N}.%s.csv; gentables sweep writes them, or copy TensorRT-LLM's",
      data_dir, arch)
  end
  return found
end

-- Reads benchmark files, { { path = }... }; reports a time of 0.0.
function rows_folder.read_rows(found)
  local read = fail.unless(rows.read(sequences.field(found, "path")))
  local left_out = {}
  for _, missing in ipairs(read:missing()) do left_out[missing.path] = missing.count end
  for _, entry in ipairs(read:files()) do
    if entry.count == 0 and (#read == 0 or not left_out[entry.path]) then
      fail.input("%s: has no row with a time; measure again, or remove it", entry.path)
    end
    if left_out[entry.path] then
      local rest = entry.count == 0 and ", and no row remains" or ""
      fail.note("%s: 0.0 is a missing time, not a fast one: %d left out%s", entry.path,
        left_out[entry.path], rest)
    end
  end
  return read
end

-- Raises unless the provenance belongs to these rows. If a sweep was killed between its two files, or one of
-- them was copied without the other, the provenance could name the wrong machine.
local function check_rows(entry, path)
  if provenance.describes(entry.provenance, fail.unless(file.read(entry.path))) then return end
  fail.input("%s: describes other rows than those in %s; sweep again, or remove it if the rows were " ..
    "changed by hand", path, entry.path)
end

-- Reads the provenance of benchmark files, { { path = }... }, into those that have one. Raises if the files
-- are of several machines, unless all were merged on purpose, or if a provenance is of other rows.
function rows_folder.read_provenance(found)
  local first
  for _, entry in ipairs(found) do
    local path = provenance.path_of(entry.path)
    if file.exists(path) then
      entry.provenance = fail.unless(provenance.read(path))
      check_rows(entry, path)
      first = first or { path = path, machine = entry.provenance.machine }
      if not machines.same(first.machine, entry.provenance.machine) then
        fail.input("%s: is of another machine (%s) than %s (%s); differences: %s; use a folder for each, " ..
          "or gentables merge --across-machines", path, machines.describe(entry.provenance.machine),
          first.path, machines.describe(first.machine),
          machines.differences(entry.provenance.machine, first.machine, "there"))
      end
      if not first.machine.fabric then first = { path = path, machine = entry.provenance.machine } end
    end
  end
end

-- Raises if the search of parameters at `path` has a provenance of another machine than the rows of `entry`.
function rows_folder.check_beside(path, entry)
  local of_search = provenance.path_of(path)
  if not entry.provenance or not file.exists(of_search) then return end
  local machine, of_rows = fail.unless(provenance.read(of_search)).machine, entry.provenance.machine
  if machines.same(machine, of_rows) then return end
  fail.input("%s: is of another machine (%s) than %s (%s); differences: %s; remove it, or search again: " ..
    "gentables sweep --transport", of_search, machines.describe(machine), provenance.path_of(entry.path),
    machines.describe(of_rows), machines.differences(machine, of_rows, "there"))
end

-- The placements of the spec, { world_size, nodes, ... }; {} without a spec, or without TP sizes in it.
local function placements_of(wanted) return wanted and wanted.tp and spec.placements(wanted) or {} end

-- Placements of the spec without rows that have a provenance with the reason: { tp, nodes, provenance }...
local function read_refused(data_dir, arch, wanted, files)
  local has, refused, machine = {}, {}, nil
  for _, entry in ipairs(files) do
    has[placement_of(entry)] = true
    machine = machine or entry.provenance and entry.provenance.machine
  end
  for _, of in ipairs(machine and placements_of(wanted) or {}) do
    local path = ("%s/%s.json"):format(data_dir, rank_placement.file_name(of.world_size, of.nodes, arch))
    local record = not has[placement_of(of)] and file.exists(path) and fail.unless(provenance.read(path))
    if record and provenance.describes(record, "") and machines.same(machine, record.machine) then
      refused[#refused + 1] = { tp = of.world_size, nodes = of.nodes, provenance = record }
    end
  end
  return refused
end

-- Those of `found` with a placement of spec.lua (`wanted`, or nil); the others are named.
local function of_wanted_placements(found, wanted, data_dir)
  if not wanted or not wanted.tp then return found end
  local kept, names, is_wanted = {}, {}, {}
  for i, of in ipairs(placements_of(wanted)) do
    names[i], is_wanted[placement_of(of)] = rank_placement.size_of(of), true
  end
  for _, entry in ipairs(found) do
    if is_wanted[placement_of(entry)] then
      kept[#kept + 1] = entry
    else
      fail.note("%s: left out: spec.lua has no %s", entry.path, placement_of(entry))
    end
  end
  if #kept == 0 then
    fail.input("%s: no rows of TP %s, which spec.lua requires", data_dir, table.concat(names, ", "))
  end
  return kept
end

-- The cells of a spec at one placement.
local function add_cells(cells, tp, nodes, wanted)
  for _, dtype in ipairs(wanted.dtypes) do
    cells[#cells + 1] = { world_size = tp, nodes = nodes, dtype = dtype, op = wanted.table.op,
      mode = wanted.table.mode, splits = wanted.splits,
      fusions = wanted.fusions, hidden_sizes = wanted.hidden_sizes, num_tokens = wanted.num_tokens }
  end
end

-- The cells of the grids: of each file its own spec's, and of placements without rows those of the folder's
-- spec (`wanted`, or nil), so that a cell without any row shows as unmeasured.
local function cells_of(wanted, files)
  local cells, has_rows = {}, {}
  for _, entry in ipairs(files) do
    has_rows[placement_of(entry)] = true
    if entry.spec then add_cells(cells, entry.tp, entry.nodes, entry.spec) end
  end
  for _, of in ipairs(placements_of(wanted)) do
    if not has_rows[placement_of(of)] then add_cells(cells, of.world_size, of.nodes, wanted) end
  end
  return cells
end

-- The files of rows that a folder has for an arch, without those that its spec.lua leaves out; and spec.lua.
function rows_folder.list(data_dir, arch, allow_loopback)
  if not lists.arch(arch) then
    fail.input("--arch %s: no such arch; valid: host, host-NAME, smNN, smNN-loopback", arch)
  end
  local wanted = folder_spec.beside(data_dir, arch)
  return of_wanted_placements(find_files(data_dir, arch, allow_loopback), wanted, data_dir), wanted
end

-- See the head of this file.
function rows_folder.read(data_dir, arch, allow_loopback)
  data_dir = data_dir:gsub("(.)/+$", "%1")
  local files, beside = rows_folder.list(data_dir, arch, allow_loopback)
  rows_folder.read_provenance(files)
  local wanted, workload = folder_spec.settle(data_dir, files, beside)
  local is_of_loopback = arch:find("%-loopback$") ~= nil
  return { data_dir = data_dir, arch = arch,
    table_arch = allow_loopback and not is_of_loopback and arch .. "-loopback" or arch,
    arch_row = lists.arch(arch), files = files, spec = wanted,
    recorded_workload = workload,
    refused = read_refused(data_dir, arch, wanted, files), rows = rows_folder.read_rows(files),
    cells = cells_of(wanted, files),
    loopback = allow_loopback or is_of_loopback }
end

-- The SM versions that have rows in the folder, or in folders named after them in it; loopback does not
-- count.
local function find_parts(data_dir)
  local folder_of, found = {}, {}
  local function add(arch, folder)
    if folder_of[arch] == folder then return end
    if folder_of[arch] then
      fail.input("%s: has rows of %s, and so has %s; give one of the folders", folder, arch,
        folder_of[arch])
    end
    folder_of[arch] = folder
    found[#found + 1] = { sm = math.tointeger(arch:match("%d+")), arch = arch, folder = folder }
  end
  for _, name in ipairs(fail.unless(file.list(data_dir))) do
    local _, _, arch = rank_placement.of_file_name(name)
    if arch and arch:find("^sm%d+$") then add(arch, data_dir) end
    if name:find("^sm%d+$") then
      for _, inner in ipairs(file.list(data_dir .. "/" .. name) or {}) do
        local _, _, inner_arch = rank_placement.of_file_name(inner)
        if inner_arch == name then add(name, data_dir .. "/" .. name) end
      end
    end
  end
  return ordering.sort(found, ordering.by "sm")
end

-- Those of `found` that programs built for these SM versions reach: for each its own, else the nearest older
-- one, else the oldest. `versions`: nil: all.
local function reached_by(found, versions)
  if not versions then return found end
  local seen = {}
  for _, sm in ipairs(versions) do
    local reached = found[1]
    for _, part in ipairs(found) do
      if part.sm <= sm then reached = part end
    end
    seen[reached] = true
  end
  return sequences.filter(found, function(part) return seen[part] end)
end

-- Whether the folder, or a folder smXX in it, has rows of SM versions.
function rows_folder.has_parts(data_dir) return #find_parts(data_dir) > 0 end

-- The folders with rows of SM versions in `data_dir`, for all versions or those that programs for
-- `versions` reach; see
-- reached_by. At least one.
function rows_folder.parts(data_dir, versions)
  local found = find_parts(data_dir)
  if #found == 0 then
    fail.input("%s: has no benchmark.tp{N}.smXX.csv, nor has a folder smXX of it; host and loopback " ..
      "do not count", data_dir)
  end
  return reached_by(found, versions)
end

return rows_folder
