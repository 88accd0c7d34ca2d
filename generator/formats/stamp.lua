-- Whether the tables in a folder are still those of its rows, without rendering them. A run of generate
-- writes a stamp after the tables: a hash of the state of all files that the run read and wrote, and the
-- paths of the tables. With an equal state, generate would write the same tables. The state of a file is its
-- size and the time of its last change.
local fail = require "base.fail"
local file = require "core.file"
local sequences = require "base.sequences"
local sorted_keys = require("base.ordering").sorted_keys
local system = require "core.system"

local stamp = {}

-- Adds the states of the files in a folder, except hidden ones such as locks; of its folders, too, if `deep`.
local function add_folder(states, folder, deep)
  for _, name in ipairs(file.list(folder) or {}) do
    local path = folder .. "/" .. name
    local kind, bytes, changed = file.status(path)
    if kind == "folder" and deep then add_folder(states, path, true) end
    if kind == "file" and name:sub(1, 1) ~= "." then states[path] = bytes .. " " .. changed end
  end
end

-- What decides on the tables that generate writes to `out` with these arguments, and the tables there, as
-- text by path or option.
function stamp.state(args, out)
  local states = { version = gentables.version }
  for name, value in pairs(args) do
    states["--" .. name] = type(value) == "table" and table.concat(value, ",") or tostring(value)
  end
  add_folder(states, gentables.home .. "/generator", true)
  add_folder(states, gentables.home .. "/templates/tables")
  add_folder(states, gentables.modules, true)
  states.program = table.concat({ file.status "/proc/self/exe" }, " ")
  states.against = args.against and table.concat({ file.status(args.against) }, " ")
  add_folder(states, args.data_dir)
  add_folder(states, out)
  return states
end

local function hash_of(states)
  local parts = sequences.map(sorted_keys(states), function(name) return name .. "\0" .. states[name] end)
  return system.hash(table.concat(parts, "\0"))
end

-- The paths of the tables, if the run that wrote the stamp at `path` left this state; else nil.
function stamp.tables(path, state)
  local kept, rest = (file.read(path) or ""):match("^(%x+)\n(.*)$")
  if not kept or kept ~= hash_of(state) then return nil end
  local paths = {}
  for line in rest:gmatch("[^\n]+") do paths[#paths + 1] = line end
  return paths
end

-- Whether nothing but the tables at `paths` has changed between two states.
local function only_tables_differ(before, after, paths)
  local is_table = sequences.set(paths)
  for _, states in ipairs { before, after } do
    for name in pairs(states) do
      if not is_table[name] and before[name] ~= after[name] then return false end
    end
  end
  return true
end

-- Writes the stamp of a run that found the state `before`, and wrote the tables at `paths` from `source` (of
-- model.load). No stamp: if the run printed notes, which the next run must print again; if it read files of
-- other folders; if an input has changed meanwhile.
function stamp.keep(path, before, args, out, source, paths)
  os.remove(path)
  local after = stamp.state(args, out)
  if fail.notes() > 0 or source.parts or source.workload_path then return end
  if not only_tables_differ(before, after, paths) then return end
  local folder = path:match("^(.*)/[^/]*$")
  if folder then fail.unless(file.make_folder(folder)) end
  fail.unless_done(file.write(path, hash_of(after) .. "\n" .. table.concat(paths, "\n") .. "\n"))
end

return stamp
