-- Chooses the reports of sweeps that are compared with each other, and names the files.
--
--   report_pairs.over(sweep, "threads" | "channels") -> list; report_pairs.of_sweeps(sweeps, labels) -> list
--   each: { name = file name without extension, reports = { { label, path }... } }
--   report_pairs.sheets(comparison) -> the sheets
local differences = require "trace.compare.differences"
local ordering = require "base.ordering"
local sequences = require "base.sequences"
local sources = require "trace.compare.sources"

local report_pairs = {}

local units = { threads = "%dthread", channels = "%dch", rank = "rank%d" }

-- "256thread_28ch_rank0", without the field that is compared.
local function name_of(entry, left_out)
  local parts = {}
  for _, field in ipairs { "threads", "channels", "rank" } do
    if entry[field] and field ~= left_out then parts[#parts + 1] = units[field]:format(entry[field]) end
  end
  return table.concat(parts, "_")
end

-- Groups entries that differ only in `field`; single ones are left out.
local function grouped(entries, field, prefix, suffix)
  local function key_of(entry) return prefix .. name_of(entry, field) .. suffix end
  return sequences.map(ordering.groups(entries, key_of), function(group)
    local reports = sequences.map(group, function(entry)
      return { label = entry.label or units[field]:format(entry[field]), path = entry.path }
    end)
    return #reports > 1 and { name = group.key, reports = reports } or nil
  end)
end

local function both(entries, collectives, field, suffix)
  return sequences.join { grouped(entries, field, "compare_", suffix),
    grouped(collectives, field, "compare_collective_", suffix) }
end

-- The reports of one sweep over its thread or channel counts.
function report_pairs.over(sweep, field)
  return both(sweep.reports, sweep.collectives, field, "_across_" .. field)
end

-- A report that one sweep lacks is compared among the others; labels[i]: of sweeps[i].
function report_pairs.of_sweeps(sweeps, labels)
  local entries = { reports = {}, collectives = {} }
  for i, sweep in ipairs(sweeps) do
    for kind, list in pairs(entries) do
      for _, entry in ipairs(sweep[kind]) do
        list[#list + 1] = setmetatable({ label = labels[i] }, { __index = entry })
      end
    end
  end
  return both(entries.reports, entries.collectives, nil, "_across_sweeps")
end

-- Reads the reports of a comparison.
function report_pairs.read(comparison)
  return sequences.map(comparison.reports, function(entry) return sources.read(entry.path, entry.label) end)
end

function report_pairs.sheets(comparison) return differences.sheets(report_pairs.read(comparison)) end

return report_pairs
