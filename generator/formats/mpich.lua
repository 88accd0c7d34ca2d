-- MPICH's selection of algorithms. A file is a tree for all collectives, and MPICH ends a program at a
-- collective without a place in it. So mpich_selection.json is the tree that MPICH has built in, with other
-- choices for an allreduce. That tree differs from version to version: `generate --mpich LIBRARY` reads it
-- from the library, and keeps it as mpich_defaults.json beside the rows.
--
-- mpich.lacks(source) gives what is missing, mpich.view(source) what templates/tables/mpich_selection.json
-- sees: { before, default, after }, texts of the tree around the choices for MPI_COMM_WORLD and the like, and
-- of MPICH's own choices there. mpich.use(source, path) takes the tree of a library or JSON file,
-- and mpich.kept(source) is the file that keeps it.
local fail = require "base.fail"
local file = require "core.file"
local json = require "codec.json"
local template = require "codec.template"

local mpich = {}

local COLLECTIVE, COMMUNICATOR = "collective=allreduce", "comm_type=intra"
local PAGE_BYTES = 4096

local function path_in(data_dir) return data_dir .. "/mpich_defaults.json" end

-- The places of the first and the last byte of the value of a key, in the object that begins at `first`; nil:
-- no such key. The text has no blanks, and all values are objects.
local function value_of(text, first, key)
  local at = first + 1
  while true do
    local name, value = text:match('^"([^"]*)":()', at)
    local _, last = text:find("^%b{}", value)
    if not name or not last then return nil end
    if name == key then return value, last end
    at = text:sub(last + 1, last + 1) == "," and last + 2 or last + 1
  end
end

-- The places of the choices for an allreduce within a group of ranks; nil: the tree has none.
local function place_in(tree)
  local collective = value_of(tree, 1, COLLECTIVE)
  if collective then return value_of(tree, collective, COMMUNICATOR) end
end

-- Whether a text is a whole tree of the algorithms that MPICH has on all devices. The trees of its devices
-- have other names.
local function is_tree(text)
  return text:find('"algorithm=MPIR_', 1, true) and not text:find("MPIDI_", 1, true) and place_in(text)
    and json.decode(text) ~= nil
end

-- The tree in the text of a library or a JSON file. MPICH ignores blanks in keys.
local function tree_of(text)
  if text:find("^%s*{") then
    local tree = text:gsub("%s", "")
    return is_tree(tree) and tree or nil
  end
  for at in text:gmatch('(){"collective=') do
    local tree = text:match("^%b{}", at)
    if tree and is_tree(tree) then return tree end
  end
end

-- Reads the tree of MPICH's library, or of a JSON file such as maint/tuning/coll/mpir/generic.json of its
-- sources, for a source (of model.load).
function mpich.use(source, path)
  local tree = tree_of(fail.unless(file.read(path)))
  if not tree then
    fail.input("--mpich %s: holds no selection of algorithms of an allreduce; libmpich.so of MPICH 4, or " ..
      "maint/tuning/coll/mpir/generic.json of its sources, is required", path)
  end
  source.mpich_tree = tree
end

-- The file of the tree of mpich.use in the folder of rows: { path, text }.
function mpich.kept(source)
  return { path = path_in(source.data_dir), text = source.mpich_tree .. "\n" }
end

function mpich.lacks(source)
  if source.mpich_tree or file.exists(path_in(source.data_dir)) then return nil end
  return ("no %s: MPICH ends programs at collectives that a selection lacks, so it needs the one that " ..
    "MPICH has built in; generate --mpich LIBRARY keeps that of libmpich.so there"):format(
    path_in(source.data_dir))
end

function mpich.view(source)
  local path = path_in(source.data_dir)
  local tree = source.mpich_tree or tree_of(fail.unless(file.read(path)))
  if not tree then fail.input("%s: no selection of MPICH, or cut off; generate --mpich writes it", path) end
  local first, last = place_in(tree)
  return { before = tree:sub(1, first - 1), default = tree:sub(first, last), after = tree:sub(last + 1) }
end

-- The text of mpich_selection.json. MPICH maps it into memory and reads up to a zero byte, which follows only
-- if the file does not end with a page.
function mpich.text(view)
  local text = template.load(gentables.home .. "/templates/tables/mpich_selection.json.tmpl")(view)
  return #text % PAGE_BYTES == 0 and text .. "\n" or text
end

return mpich
