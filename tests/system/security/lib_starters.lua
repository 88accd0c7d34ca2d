-- Which modules of the generator start processes or make temporary folders, by their text.
local file = require "core.file"

local starters = {}

local CALLS = { "process%.start%(", "child_process%.run%(", "workers%.map%(", "scratch%.folder%(" }
local generator = os.getenv("SOURCE") .. "/generator/"

local function path_of(module) return generator .. module:gsub("%.", "/") end

-- Adds the modules below a folder, named as in `require` with a dot at its end ("": all), to `found`.
local function add_modules(folder, found)
  for _, name in ipairs(file.list(path_of(folder)) or {}) do
    if name:find("%.lua$") then
      found[#found + 1] = folder .. name:gsub("%.lua$", "")
    elseif file.status(path_of(folder) .. name) == "folder" then
      add_modules(folder .. name .. ".", found)
    end
  end
  return found
end

-- The text of a module without comments, or nil if it is not a Lua file of the generator.
local function text_of(module)
  local path = path_of(module) .. ".lua"
  return file.exists(path) and assert(file.read(path)):gsub("%-%-[^\n]*", "") or nil
end

-- Whether a module starts processes or makes folders by a call of its own. Those of system/ do so for others.
local function is_starter(module, text)
  if module:find("^system%.") then return false end
  for _, call in ipairs(CALLS) do
    if text:find(call) then return true end
  end
  return false
end

-- The starters among a module and those that it names, directly or not, as a set. A name with a dot at its
-- end is for all modules of a folder: require("plots." .. kind).
function starters.of(module, found, seen)
  found, seen = found or {}, seen or {}
  local text = not seen[module] and text_of(module)
  seen[module] = true
  if not text then return found end
  if is_starter(module, text) then found[module] = true end
  for name in text:gmatch('"([%w_]+%.[%w_.]*)"') do
    local modules = name:find("%.$") and add_modules(name, {}) or { name }
    for _, each in ipairs(modules) do starters.of(each, found, seen) end
  end
  return found
end

-- All starters, in a list.
function starters.all()
  local found = {}
  for _, module in ipairs(add_modules("", {})) do
    if is_starter(module, text_of(module)) then found[#found + 1] = module end
  end
  table.sort(found)
  return found
end

return starters
