-- Rows in the folder of a sweep that it does not measure: those of TP sizes and numbers of nodes that the
-- spec does not have, or that --tp and --nodes leave out, and searches of Open MPI's parameters. Those of
-- this machine stay. Those of another one are removed after a sweep of the whole spec, because a table is
-- made from one machine.
local fail = require "base.fail"
local file = require "core.file"
local machines = require "machine.machines"
local provenance = require "rows.provenance"
local rank_placement = require "lists.rank_placement"
local sequences = require "base.sequences"
local spec = require "rows.spec"

local leftovers = {}

-- The machine of the rows at `path` if it is known and another one. Rows that were imported, or merged from
-- several machines, are of no sweep.
local function other_machine(path, here)
  local record = provenance.read(provenance.path_of(path))
  local machine = record and record.machine.cpu and record.machine
  return machine and not machines.same(machine, here) and machine or nil
end

-- The names of the files of rows for these placements, as a set.
local function file_names(placements, arch)
  return sequences.set(sequences.map(placements, function(of)
    return rank_placement.file_name(of.world_size, of.nodes, arch) .. ".csv"
  end))
end

-- { path, words, is_search, is_in_spec, here, other = another machine than `here`, or nil }... of the folder,
-- in order of their names; `words`: the placement of the rows.
local function find(job)
  local found = {}
  local measured = file_names(job.placements, job.arch)
  local of_spec = file_names(spec.placements(job.spec), job.arch)
  for _, name in ipairs(fail.unless(file.list(job.out))) do
    local tp, nodes, arch = rank_placement.of_file_name(name)
    local searched = name:match("^transport%.tp%d+%.(.*)%.csv$")
    if searched == job.arch or arch == job.arch and not measured[name] then
      local path = job.out .. "/" .. name
      local here = rank_placement.spans(nodes) and job.over_nodes.machine or job.machine
      found[#found + 1] = { path = path, words = tp and rank_placement.words(tp, nodes),
        is_search = searched ~= nil, is_in_spec = of_spec[name], here = here,
        other = other_machine(path, here) }
    end
  end
  return found
end

-- Whether the sweep measures every placement of its spec.
local function is_whole(job) return #job.placements == #spec.placements(job.spec) end

-- Prints, before measuring, which rows stay though no table uses them.
function leftovers.announce(job)
  for _, entry in ipairs(find(job)) do
    if entry.other and not is_whole(job) then
      print(("%s: stays, with rows of %s, which differs in %s; a sweep without --tp and --nodes removes or "
        .. "replaces it"):format(entry.path, machines.describe(entry.other),
        machines.differences(entry.other, entry.here)))
    elseif not entry.other and not entry.is_in_spec and not entry.is_search then
      print(("%s: stays; tables do not use it, because the spec has no %s"):format(entry.path, entry.words))
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
        machines.describe(entry.other), machines.differences(entry.other, entry.here), way_out))
    end
  end
end

return leftovers
