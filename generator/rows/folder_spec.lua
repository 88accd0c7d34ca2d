-- The spec of the rows in a folder: spec.lua beside them; without it, for each file of rows, the spec that
-- its sweep recorded in its provenance. Rows of other tools, and of earlier versions of the sweep, have
-- neither.
--
-- If both exist and differ, spec.lua holds, because people edit it; a note names the keys. A spec.lua for
-- another arch than that of the rows does not count; a note names it.
local fail = require "base.fail"
local file = require "core.file"
local lists = require "lists.lists"
local provenance = require "base.lazy" "rows.provenance"
local sequences = require "base.sequences"
local sorted_keys = require("base.ordering").sorted_keys
local spec = require "base.lazy" "rows.spec"

local folder_spec = {}

-- Whether a spec for one arch is for rows of another: of the same SM version, with or without loopback; gpu
-- stands for any GPU, and the names of hosts are no difference.
local function is_for(arch, of_rows)
  local from, to = arch:gsub("%-loopback$", ""), of_rows:gsub("%-loopback$", "")
  local row, other = lists.arch(from), lists.arch(to)
  if not row or not other or row.backend ~= other.backend then return false end
  return from == to or from == "gpu" or row.backend == "host"
end

-- Reads spec.lua beside the rows (spec.load_for_tables: complete, or `table` alone); nil if there is none for
-- `arch`, and then its arch, if it is for another.
function folder_spec.find(data_dir, arch)
  local path = data_dir .. "/spec.lua"
  local found = file.exists(path) and spec.load_for_tables(path) or nil
  if found and found.arch and not is_for(found.arch, arch) then return nil, found.arch end
  return found
end

-- The same; a note names a spec.lua for another arch.
function folder_spec.beside(data_dir, arch)
  local found, other = folder_spec.find(data_dir, arch)
  if other then
    fail.note("%s/spec.lua: is for %s, so it is not used for rows of %s", data_dir, other, arch)
  end
  return found
end

-- Whether a spec has a grid, not only `table`.
local function is_complete(found) return found ~= nil and found.tp ~= nil end

-- The spec that the sweep of a file of rows recorded, or nil.
local function recorded_of(entry)
  local of = entry.provenance and entry.provenance.spec
  return of and of.keys and spec.recorded(provenance.path_of(entry.path), of.keys) or nil
end

-- The keys in which two specs differ, as text; nil: none. The rows of one placement do not depend on `arch`,
-- on the other placements, and on predictions.
local function different_keys(a, b)
  local all = sequences.merged(a, b)
  all.arch, all.tp, all.nodes, all.ranks_per_node, all.predict = nil, nil, nil, nil, nil
  local out = sequences.filter(sorted_keys(all), function(key)
    return not provenance.same(a[key] or {}, b[key] or {})
  end)
  return out[1] and table.concat(out, ", ")
end

-- The differences between spec.lua and the spec of a file's sweep, as text; nil: none, or no sweep made the
-- rows.
local function contradiction(entry, beside, recorded)
  local of = entry.provenance and entry.provenance.spec
  if not of then return nil end
  if recorded then
    local names = different_keys(beside, recorded)
    return names and ", which differs in " .. names
  end
  return of.hash ~= provenance.spec_hash(beside) and "; its keys are not recorded" or nil
end

-- Prints one line for all files that spec.lua contradicts in the same way.
local function print_contradictions(data_dir, files, beside, recorded)
  local words, names = {}, {}
  for _, entry in ipairs(files) do
    local how = contradiction(entry, beside, recorded[entry])
    if how and not names[how] then words[#words + 1], names[how] = how, {} end
    if how then table.insert(names[how], entry.path:match("[^/]*$")) end
  end
  for _, how in ipairs(words) do
    fail.note("%s/spec.lua: is used; the sweep of %s had another spec%s", data_dir,
      table.concat(names[how], ", "), how)
  end
end

-- Whether the record of `entry` is later than that of `other` (or nil).
local function is_later(entry, other)
  return not other or (entry.provenance.date or "") > (other.provenance.date or "")
end

-- Sets `spec` of each entry ({ path, provenance }) to the spec of its rows, if there is one. `beside`: of
-- folder_spec.beside. Returns the spec of the folder: spec.lua, else the one recorded last, in which a
-- `table` in spec.lua replaces the recorded one; nil without any. Also returns the text of the workload that
-- was recorded last, or nil.
function folder_spec.settle(data_dir, files, beside)
  local recorded, last = {}, nil
  for _, entry in ipairs(files) do
    recorded[entry] = recorded_of(entry)
    entry.spec = is_complete(beside) and beside or recorded[entry]
    if recorded[entry] and is_later(entry, last) then last = entry end
  end
  local workload = last and last.provenance.spec.workload
  if is_complete(beside) then
    print_contradictions(data_dir, files, beside, recorded)
    return beside, workload
  end
  if last and beside then recorded[last].table = beside.table end
  return last and recorded[last] or beside, workload
end

return folder_spec
