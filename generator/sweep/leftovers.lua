-- Rows in the folder of a sweep that it does not measure: those of TP sizes that the spec does not have or
-- --tp leaves out, and searches of Open MPI's parameters. Those of this machine stay. Those of another one
-- are removed after a sweep of all TP sizes of the spec, because a table is made from one machine.
local fail = require "base.fail"
local file = require "core.file"
local lists = require "lists.lists"
local machines = require "machine.machines"
local provenance = require "rows.provenance"

local leftovers = {}

-- The machine of the rows at `path` if it is known and another one. Rows that were imported, or merged from
-- several machines, are of no sweep.
local function other_machine(path, job)
  local record = provenance.read(provenance.path_of(path))
  local machine = record and record.machine.cpu and record.machine
  return machine and not machines.same(machine, job.machine) and machine or nil
end

-- { path, tp, is_search, other = another machine or nil }... of the folder, in order of their names.
local function find(job)
  local found, names = {}, fail.unless(file.list(job.out))
  table.sort(names)
  for _, name in ipairs(names) do
    local kind, size, arch = name:match("^(%l+)%.tp(%d+)%.(.*)%.csv$")
    local tp = math.tointeger(tonumber(size))
    local is_search = kind == "transport"
    if arch == job.arch and (is_search or kind == "benchmark" and not lists.contains(job.sizes, tp)) then
      local path = job.out .. "/" .. name
      found[#found + 1] = { path = path, tp = tp, is_search = is_search, other = other_machine(path, job) }
    end
  end
  return found
end

-- Whether the sweep measures every TP size of its spec.
local function is_whole(job) return #job.sizes == #job.spec.tp end

-- Prints, before measuring, which rows stay though no table uses them.
function leftovers.announce(job)
  for _, entry in ipairs(find(job)) do
    local is_in_spec = lists.contains(job.spec.tp, entry.tp)
    if entry.other and not is_whole(job) then
      print(("%s: stays, with rows of %s, which differs in %s; a sweep without --tp removes or replaces it")
        :format(entry.path, machines.describe(entry.other), machines.differences(entry.other, job.machine)))
    elseif not entry.other and not is_in_spec and not entry.is_search then
      print(("%s: stays; tables do not use it, because the spec has no TP %d"):format(entry.path, entry.tp))
    end
  end
end

-- Removes, after all TP sizes have rows, those of another machine, with their provenance and journal.
function leftovers.remove(job)
  if not is_whole(job) then return end
  for _, entry in ipairs(find(job)) do
    if entry.other then
      os.remove(entry.path)
      os.remove(provenance.path_of(entry.path))
      os.remove(entry.path .. ".part")
      local way_out = entry.is_search and "; gentables sweep --transport measures again" or ""
      print(("removed %s: rows of %s, which differs in %s%s"):format(entry.path,
        machines.describe(entry.other), machines.differences(entry.other, job.machine), way_out))
    end
  end
end

return leftovers
