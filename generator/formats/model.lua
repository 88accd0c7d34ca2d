-- What a template sees: the rows of one arch, selected, with the facts around them. It renders nothing.
--
-- model.load(data_dir, arch) reads the folder: rows, spec and provenance; model.read does, and chooses
-- nothing. model.for_format(source, format) gives the view of one format:
--   arch, fallback, lists, format
--   canonical  the canonical table (core.table) of the strategies that the format can name
--   axes       { dtype, op, mode } that formats without such axes hold
--   worlds     those TP sizes, ascending, that have cells of `axes`: { tp, block, mode, hidden_sizes,
--              num_tokens, fusions = { { name, rows = { winners... } } } }; a winner is a row of
--              lists.strategies, or false where nothing was measured
--   world_of   TP size -> its row in worlds
--   by_bytes   what was measured by bytes alone, of every op: { { tp, op, splits (nil: none), block, mode,
--              bytes, winners }... } in the table's order
--   strategies the strategies that won a cell of `worlds` or `by_bytes`, and the fallback, in the list's
--              order
local settings = require "base.lazy" "choose.settings"
local choices = require "core.choose"
local derive = require "base.lazy" "choose.derive"
local fail = require "base.fail"
local file = require "core.file"
local folder_spec = require "base.lazy" "rows.folder_spec"
local gaps = require "formats.gaps"
local lists = require "lists.lists"
local machines = require "base.lazy" "rows.machines"
local provenance = require "base.lazy" "rows.provenance"
local rows = require "core.rows"
local sorted_keys = require "base.sorted_keys"

local model = {}

-- ---- the folder -------------------------------------------------------------------------------

-- The benchmark files of the arch, by TP size; {} where there is none. With `allow_loopback` those of ranks
-- on one GPU stand in where a TP size has no others.
local function list_files(data_dir, arch, allow_loopback)
  local found, has = {}, {}
  for _, name in ipairs(fail.unless(file.list(data_dir))) do
    local tp, rest = name:match("^benchmark%.tp(%d+)%.(.*)%.csv$")
    if tp and rest == arch then
      found[#found + 1] = { tp = tonumber(tp), path = data_dir .. "/" .. name }
      has[tp] = true
    end
  end
  for _, name in ipairs(allow_loopback and file.list(data_dir) or {}) do
    local tp, rest = name:match("^benchmark%.tp(%d+)%.(.*)%.csv$")
    if tp and rest == arch .. "-loopback" and not has[tp] then
      found[#found + 1] = { tp = tonumber(tp), path = data_dir .. "/" .. name }
    end
  end
  table.sort(found, function(a, b) return a.tp < b.tp end)
  return found
end

-- The arch of the rows in a folder. `given`: that of --arch, or nil. Raises if the folder has rows of several
-- archs or of none; `other`: a file that could be there in place of rows, for the message, or nil.
function model.only_arch(data_dir, given, other)
  if given then return given end
  local seen = {}
  for _, name in ipairs(fail.unless(file.list(data_dir))) do
    local arch = name:match("^benchmark%.tp%d+%.(.*)%.csv$")
    if arch then seen[arch] = true end
  end
  local archs = sorted_keys(seen)
  if #archs == 0 then
    fail.input("%s: %s benchmark.tp{N}.{arch}.csv; gentables sweep writes them", data_dir,
      other and ("neither %s nor"):format(other) or "no")
  elseif #archs > 1 then
    fail.input("%s: has rows of %s; --arch with one of them is required", data_dir, table.concat(archs, ", "))
  end
  return archs[1]
end

local function find_files(data_dir, arch, allow_loopback)
  local found = list_files(data_dir, arch, allow_loopback)
  if #found == 0 then
    fail.input("%s: no benchmark.tp{N}.%s.csv is there; gentables sweep makes them, or copy TensorRT-LLM's",
      data_dir, arch)
  end
  return found
end

local function read_rows(found)
  local paths = {}
  for i, entry in ipairs(found) do paths[i] = entry.path end
  local read = fail.unless(rows.read(paths))
  local left_out = {}
  for _, missing in ipairs(read:missing()) do left_out[missing.path] = missing.count end
  for _, entry in ipairs(read:files()) do
    if entry.count == 0 and (#read == 0 or not left_out[entry.path]) then
      fail.input("%s: holds no row with a time; measure again, or remove it", entry.path)
    end
    if left_out[entry.path] then
      local words = "gentables: %s: 0.0 is a missing time, not a fast one: %d left out%s\n"
      local rest = entry.count == 0 and ", and no other is there" or ""
      io.stderr:write(words:format(entry.path, left_out[entry.path], rest))
    end
  end
  return read
end

-- Raises unless the provenance is of these very rows. If a sweep was killed between its two files, or one of
-- them was copied without the other, the provenance could name the wrong machine.
local function check_rows(entry, path)
  if provenance.describes(entry.provenance, fail.unless(file.read(entry.path))) then return end
  fail.input("%s: describes other rows than those in %s; sweep again, or remove it if the rows were " ..
    "changed by hand", path, entry.path)
end

-- Reads the provenance of benchmark files, { { path = }... }, into those that have one. Raises if the files
-- are of several machines, unless all were merged on purpose, or if a provenance is of other rows.
function model.read_provenance(found)
  local first
  for _, entry in ipairs(found) do
    local path = provenance.path_of(entry.path)
    if file.exists(path) then
      entry.provenance = fail.unless(provenance.read(path))
      check_rows(entry, path)
      first = first or { path = path, machine = entry.provenance.machine }
      if not machines.same(first.machine, entry.provenance.machine) then
        fail.input("%s: another machine's (%s) than %s (%s), as it differs in %s; use a folder for each, " ..
          "or gentables merge --across-machines", path, machines.describe(entry.provenance.machine),
          first.path, machines.describe(first.machine),
          machines.differences(entry.provenance.machine, first.machine, "there"))
      end
    end
  end
end

-- Of TP sizes of the spec without rows, where a provenance says why there are none: { tp, provenance }...
local function read_refused(data_dir, arch, wanted, files)
  local has, refused, machine = {}, {}, nil
  for _, entry in ipairs(files) do
    has[entry.tp], machine = true, machine or entry.provenance and entry.provenance.machine
  end
  for _, tp in ipairs(machine and wanted and wanted.tp or {}) do
    local path = ("%s/benchmark.tp%d.%s.json"):format(data_dir, tp, arch)
    local record = not has[tp] and file.exists(path) and fail.unless(provenance.read(path))
    if record and provenance.describes(record, "") and machines.same(machine, record.machine) then
      refused[#refused + 1] = { tp = tp, provenance = record }
    end
  end
  return refused
end

-- Those of `found` with a TP size of spec.lua (`wanted`, or nil); the others are named.
local function of_wanted_sizes(found, wanted, data_dir)
  if not wanted or not wanted.tp then return found end
  local kept = {}
  for _, entry in ipairs(found) do
    if lists.contains(wanted.tp, entry.tp) then
      kept[#kept + 1] = entry
    else
      io.stderr:write(("gentables: %s: left out: spec.lua has no TP %d\n"):format(entry.path, entry.tp))
    end
  end
  if #kept == 0 then
    fail.input("%s: no rows of TP %s, which spec.lua asks for", data_dir, table.concat(wanted.tp, ", "))
  end
  return kept
end

-- The cells of a spec at one TP size.
local function add_cells(cells, tp, wanted)
  for _, dtype in ipairs(wanted.dtypes) do
    cells[#cells + 1] = { world_size = tp, dtype = dtype, op = wanted.table.op, mode = wanted.table.mode,
      splits = wanted.splits,
      fusions = wanted.fusions, hidden_sizes = wanted.hidden_sizes, num_tokens = wanted.num_tokens }
  end
end

-- The cells of the grids: of each file its own spec's, and of TP sizes without rows those of the folder's
-- spec (`wanted`, or nil), so that a cell without any row shows as unmeasured.
local function cells_of(wanted, files)
  local cells, has_rows = {}, {}
  for _, entry in ipairs(files) do
    has_rows[entry.tp] = true
    if entry.spec then add_cells(cells, entry.tp, entry.spec) end
  end
  for _, tp in ipairs(wanted and wanted.tp or {}) do
    if not has_rows[tp] then add_cells(cells, tp, wanted) end
  end
  return cells
end

-- The options of a choice of a source for a reader with this lookup (of core.table).
function model.options_of(source, lookup)
  return { loopback = source.loopback, least = source.least, cells = source.cells,
    only_cells = #source.cells > 0, lookup = source.corner and "exact" or lookup,
    derived = derive.of_source(source), same_bits_as = source.same_bits_as, workload = source.workload,
    regret = source.regret }
end

-- The table of the strategies in `candidates` (nil: all) for a reader with this lookup; made once for each.
-- What is there already has been chosen for the nearest size, and stays only there. If numerics are stable,
-- the first, canonical table has the classes of the earlier one, and the others have those of the canonical.
local function select_table(source, candidates, lookup)
  local options = model.options_of(source, lookup or "nearest")
  local key = (candidates and table.concat(candidates, ",") or "*") .. " " .. options.lookup
  if not source.tables[key] then
    options.candidates, options.incumbent = candidates, options.lookup == "nearest" and source.stays or nil
    options.stable = source.stable and (source.stable_as or source.stays or true)
    source.tables[key] = fail.unless(choices.select(source.rows, options))
  end
  return source.tables[key]
end

-- The canonical table of a source.
function model.canonical(source) return select_table(source) end

-- What formats without axes for them hold. The spec says it; without one, the only dtype and op that there
-- are will be meant.
local function axes_of(source)
  if source.spec then return source.spec.table end
  local default, blocks = lists.default_table, select_table(source):blocks()
  local dtype, op = blocks[1].dtype, blocks[1].op
  for _, block in ipairs(blocks) do
    if block.dtype ~= dtype then dtype = default.dtype end
    if block.op ~= op then op = default.op end
  end
  return { dtype = dtype, op = op, mode = default.mode }
end

-- Reads benchmark files, { { path = }... }; a 0.0 is said. What is not right raises.
model.read_rows = read_rows

-- The benchmark files of an arch in a folder, by TP size: { path, tp }; {} where there is none.
model.find_files = list_files

-- The files of rows that a folder has for an arch, without those that its spec.lua leaves out; and spec.lua.
function model.list(data_dir, arch, allow_loopback)
  if not lists.arch(arch) then
    fail.input("--arch %s: no such arch; valid: host, host-NAME, smNN, smNN-loopback", arch)
  end
  local wanted = folder_spec.beside(data_dir)
  return of_wanted_sizes(find_files(data_dir, arch, allow_loopback), wanted, data_dir), wanted
end

-- Reads a folder. Wrong or missing input raises.
function model.read(data_dir, arch, allow_loopback)
  data_dir = data_dir:gsub("(.)/+$", "%1")
  local files, beside = model.list(data_dir, arch, allow_loopback)
  model.read_provenance(files)
  local wanted, workload = folder_spec.settle(data_dir, files, beside)
  return { data_dir = data_dir, arch = arch, arch_row = lists.arch(arch), files = files, spec = wanted,
    recorded_workload = workload,
    refused = read_refused(data_dir, arch, wanted, files), rows = read_rows(files),
    cells = cells_of(wanted, files), tables = {}, planes = {},
    loopback = allow_loopback or arch:find("%-loopback$") ~= nil }
end

-- The SM versions that have rows in the folder, or in folders named after them in it; loopback does not
-- count.
local function find_parts(data_dir)
  local folder_of, found = {}, {}
  local function add(arch, folder)
    if folder_of[arch] == folder then return end
    if folder_of[arch] then
      fail.input("%s: rows of %s are there and in %s; give one of the folders", folder, arch,
        folder_of[arch])
    end
    folder_of[arch] = folder
    found[#found + 1] = { sm = math.tointeger(arch:match("%d+")), arch = arch, folder = folder }
  end
  for _, name in ipairs(fail.unless(file.list(data_dir))) do
    local arch = name:match("^benchmark%.tp%d+%.(sm%d+)%.csv$")
    if arch then add(arch, data_dir) end
    if name:find("^sm%d+$") then
      for _, inner in ipairs(file.list(data_dir .. "/" .. name) or {}) do
        if inner:match("^benchmark%.tp%d+%.(.*)%.csv$") == name then add(name, data_dir .. "/" .. name) end
      end
    end
  end
  table.sort(found, function(a, b) return a.sm < b.sm end)
  return found
end

-- Those of `found` that programs built for these SM versions reach: for each its own, else the nearest older
-- one, else the oldest. `text`: as --sm has them; nil: all.
local function reached_by(found, text)
  if not text then return found end
  local kept, seen = {}, {}
  for word in text:gmatch("[^,]+") do
    local sm = word:find("^%d+$") and math.tointeger(tonumber(word))
    if not sm then fail.input("--sm %s: %s is no SM version; valid: numbers such as 80,90", text, word) end
    local reached = found[1]
    for _, part in ipairs(found) do
      if part.sm <= sm then reached = part end
    end
    seen[reached] = true
  end
  for _, part in ipairs(found) do
    if seen[part] then kept[#kept + 1] = part end
  end
  return kept
end

-- The archs of a folder together.
local function load_parts(data_dir, args)
  data_dir = data_dir:gsub("(.)/+$", "%1")
  local source = { data_dir = data_dir, arch = "all", arch_row = lists.all_archs, parts = {}, files = {} }
  local found = find_parts(data_dir)
  if #found == 0 then
    fail.input("%s: no benchmark.tp{N}.smXX.csv is there, nor in a folder smXX of it; host and loopback " ..
      "do not count", data_dir)
  end
  for _, part in ipairs(reached_by(found, args.sm)) do
    local of_part = setmetatable({ sm = false }, { __index = args })
    table.insert(source.parts, model.load(part.folder, part.arch, of_part))
  end
  return source
end

-- The same, chosen as `args` say (those of settings.options; nil: none), for tables in `folder` (nil: there).
-- `all`: see lists.all_archs; args.sm: of these only what --sm asks for.
function model.load(data_dir, arch, args, folder)
  args = args or {}
  if arch == lists.all_archs.name then return load_parts(data_dir, args) end
  if args.sm then fail.input("--sm requires --arch all; %s is one arch", arch) end
  local source = model.read(data_dir, arch, args.allow_loopback)
  settings.apply(source, args, folder or source.data_dir)
  source.only_measured = args.sm_version ~= nil -- as TensorRT-LLM's generator
  source.stable_as = source.stable and select_table(source) or nil
  source.axes = axes_of(source)
  source.gaps = gaps.of(source, select_table(source))
  if source.workload then
    settings.check_workload(source.workload_path, source.workload, select_table(source):blocks())
  end
  return source
end

-- ---- the table --------------------------------------------------------------------------------

-- The strategies that have a row, as { NAME = true }.
function model.measured(source)
  source.measured = source.measured or source.rows:strategies()
  return source.measured
end

-- The strategies that the format can name; nil: all.
local function candidates_of(format)
  if not format.names then return nil end
  local names = {}
  for _, strategy in ipairs(lists.strategies) do
    if format.names(strategy) then names[#names + 1] = strategy.name end
  end
  return names
end

local function has_winner(table_of, index, block)
  for fusion = 1, #block.fusions do
    for hidden = 1, #block.hidden_sizes do
      for _, strategy in ipairs(table_of:winners(index, fusion, hidden)) do
        if strategy ~= 0 then return true end
      end
    end
  end
  return false
end

-- The block of each TP size that `axes` means. Rows of other tools do not say their mode; they stand in
-- where a TP size has none of the mode that is asked for.
local function find_blocks(table_of, axes)
  local exact, unknown, sizes = {}, {}, {}
  for index, block in ipairs(table_of:blocks()) do
    local has_shapes = not block.sizes_only and not block.splits -- what formats have an axis for
    local is_meant = has_shapes and block.dtype == axes.dtype and block.op == axes.op
    if is_meant and has_winner(table_of, index, block) then
      block.index = index
      if block.mode == axes.mode then
        exact[block.world_size] = block
      elseif block.mode == "unknown" then
        unknown[block.world_size] = block
      end
    end
  end
  local found = {}
  for tp in pairs(exact) do sizes[tp] = true end
  for tp in pairs(unknown) do sizes[tp] = true end
  for tp in pairs(sizes) do found[#found + 1] = exact[tp] or unknown[tp] end
  table.sort(found, function(a, b) return a.world_size < b.world_size end)
  return found
end

-- The winners of a row of cells, as rows of lists.strategies; false: unmeasured.
local function winners_of(table_of, index, fusion, hidden)
  local row = table_of:winners(index, fusion, hidden)
  for t, strategy in ipairs(row) do row[t] = strategy ~= 0 and lists.strategies[strategy] end
  return row
end

local function world_of(table_of, block)
  local world = { tp = block.world_size, block = block.index, mode = block.mode,
    hidden_sizes = block.hidden_sizes, num_tokens = block.num_tokens, fusions = {} }
  for f, name in ipairs(block.fusions) do
    local fusion = { name = name, rows = {} }
    for h = 1, #block.hidden_sizes do fusion.rows[h] = winners_of(table_of, block.index, f, h) end
    world.fusions[f] = fusion
  end
  return world
end

-- The blocks without shapes of a data type. Where rows of several modes are there, those of `axes` count.
local function blocks_by_bytes(table_of, axes)
  local out, index_of = {}, {}
  for index, block in ipairs(table_of:blocks()) do
    if block.sizes_only and block.dtype == axes.dtype and has_winner(table_of, index, block) then
      local key = ("%d %s %s"):format(block.world_size, block.op, block.splits or "")
      local found = { tp = block.world_size, op = block.op, splits = block.splits, block = index,
        mode = block.mode, bytes = block.num_tokens, winners = winners_of(table_of, index, 1, 1) }
      local at = index_of[key] or #out + 1
      if not index_of[key] or block.mode == axes.mode then out[at], index_of[key] = found, at end
    end
  end
  return out
end

-- The names of the strategies that occur, as { NAME = true }.
local function strategies_in(worlds, by_bytes)
  local seen = {}
  local function add(row)
    for _, strategy in ipairs(row) do
      if strategy then seen[strategy.name] = true end
    end
  end
  for _, of in ipairs(by_bytes) do add(of.winners) end
  for _, world in ipairs(worlds) do
    for _, fusion in ipairs(world.fusions) do
      for _, row in ipairs(fusion.rows) do add(row) end
    end
  end
  return seen
end

-- What formats without axes for data type, op and mode see of a table of select_table; made once for each.
local function plane_of(source, canonical)
  local plane = source.planes[canonical]
  if plane then return plane end
  plane = { worlds = {}, world_of = {} }
  for i, block in ipairs(find_blocks(canonical, source.axes)) do
    plane.worlds[i] = world_of(canonical, block)
    plane.world_of[block.world_size] = plane.worlds[i]
  end
  plane.by_bytes = blocks_by_bytes(canonical, source.axes)
  plane.seen, plane.strategies = strategies_in(plane.worlds, plane.by_bytes), {}
  source.planes[canonical] = plane
  return plane
end

-- The rows of the strategies that occur in a plane, and of the fallback, in the list's order.
local function strategies_of(plane, fallback)
  local out = plane.strategies[fallback]
  if out then return out end
  out = {}
  for _, strategy in ipairs(lists.strategies) do
    if plane.seen[strategy.name] or strategy.name == fallback then out[#out + 1] = strategy end
  end
  plane.strategies[fallback] = out
  return out
end

-- What readers of `format` (nil: of one that names every strategy) get where nothing was measured. A table
-- that keeps to the bits of one strategy falls back on that; not where the format's reader has its own rule.
function model.fallback(source, format)
  local has_own_rule = format and format.names
  return not has_own_rule and source.same_bits_as or source.arch_row.fallback
end

-- What the template of `format` sees. `worlds` is empty where no row is of `axes`. Formats that choose among
-- the same strategies share what is in it, and leave it as it is.
function model.for_format(source, format)
  local canonical = select_table(source, candidates_of(format), format.lookup)
  local plane, fallback = plane_of(source, canonical), model.fallback(source, format)
  return { arch = source.arch, fallback = fallback, lists = lists, format = format,
    source = source, axes = source.axes, canonical = canonical, worlds = plane.worlds,
    world_of = plane.world_of, by_bytes = plane.by_bytes,
    strategies = strategies_of(plane, fallback) }
end

-- Whether no row of a source has tokens and a hidden size.
function model.is_by_bytes(source)
  for _, slice in ipairs(source.rows:slices()) do
    if not slice.sizes_only then return false end
  end
  return true
end

-- The dtypes, ops and modes of a table, for people.
function model.blocks_in_words(table_of)
  local seen, out = {}, {}
  for _, block in ipairs(table_of:blocks()) do
    local words = ("%s %s %s"):format(block.dtype, block.op, block.mode)
    if not seen[words] then
      seen[words] = true
      out[#out + 1] = words
    end
  end
  return table.concat(out, "; ")
end

return model
