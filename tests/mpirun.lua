-- The command lines by which tests start ranks of the bench by hand: those of
-- generator/conversation/launcher.lua.
--
--   gentables lua tests/mpirun.lua                  mpirun and its options, without -n: ranks share cores
--   gentables lua tests/mpirun.lua transport        the same without those of the bench's algorithms
--   gentables lua tests/mpirun.lua RANKS CORES      of so many ranks, with -n, on so many cores
--
-- `require` returns the first as a list.
local launcher = require "conversation.launcher"

-- Removes the options that set a parameter with a name that begins with `prefix`.
local function without(words, prefix)
  local kept, at = {}, 1
  while at <= #words do
    local drops = words[at] == "--mca" and words[at + 1]:find(prefix, 1, true) == 1
    if not drops then kept[#kept + 1] = words[at] end
    at = at + (drops and 3 or 1)
  end
  return kept
end

local function shared_cores()
  local words, at = launcher.command(2, 1), 1
  while words[at] ~= "-n" do at = at + 1 end
  assert(table.remove(words, at) == "-n" and table.remove(words, at) == "2", "mpirun -n 2 ...")
  return words
end

if not arg[0]:find("mpirun.lua", 1, true) then return shared_cores() end
local words
if arg[1] == "transport" then
  words = without(shared_cores(), "coll_")
elseif arg[1] then
  words = launcher.command(tonumber(arg[1]), tonumber(arg[2]))
else
  words = shared_cores()
end
print(table.concat(words, " "))
