-- The differences between two runs of a history, by their provenance: the machine, the libraries, the bench
-- and how it was started. Pure.
local json = require "codec.json"
local machines = require "machine.machines"
local provenance = require "rows.provenance"
local sequences = require "base.sequences"
local sorted_keys = require("base.ordering").sorted_keys

local run_changes = {}

local LIMITS = { "min_samples", "max_samples", "cell_us" }

-- The facts of a provenance that a history keeps: { machine, bench, launch, placement, roundtrip_us, limits
-- }.
function run_changes.facts(record)
  local keys = record.spec and record.spec.keys
  local limits = {}
  for _, name in ipairs(LIMITS) do limits[name] = keys and keys.limits and keys.limits[name] end
  return { machine = record.machine, bench = record.bench, launch = record.launch,
    placement = record.placement, roundtrip_us = record.roundtrip_us, limits = limits }
end

local function text_of(value)
  if value == nil then return "none" end
  return type(value) == "table" and json.compact(value) or tostring(value)
end

-- Adds the fields in which two tables differ.
local function compare(out, what, old, new)
  old, new = old or {}, new or {}
  for _, name in ipairs(sorted_keys(sequences.merged(old, new))) do
    local before, after = text_of(old[name]), text_of(new[name])
    if before ~= after then out[#out + 1] = ("%s %s (%s, now %s)"):format(what, name, before, after) end
  end
end

-- The changes from one run's facts to another's, as { text... }; {} if they have none.
function run_changes.between(old, new)
  local out = {}
  local of_machine = machines.differences(old.machine or {}, new.machine or {}, "now")
  if of_machine ~= "" then out[1] = of_machine end
  compare(out, "bench", old.bench, new.bench)
  compare(out, "launch", old.launch, new.launch)
  -- Earlier versions did not record limits.
  if next(old.limits or {}) and next(new.limits or {}) then compare(out, "limit", old.limits, new.limits) end
  compare(out, "", { placement = old.placement }, { placement = new.placement })
  local before, after = old.roundtrip_us or 0, new.roundtrip_us or 0
  if before > 0 and after > 0 and not provenance.same_regime(before, after) then
    out[#out + 1] = ("round trip of a flag (%.3g us, now %.3g us)"):format(before, after)
  end
  for i, text in ipairs(out) do out[i] = text:gsub("^%s+", "") end
  return out
end

return run_changes
