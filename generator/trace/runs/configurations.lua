-- The configurations of sweeps, each a number of threads and of channels, in their order.
--
--   configurations.key(entry) -> a text, equal for entries of one configuration
--   configurations.before(a, b) -> whether a comes before b
--   configurations.of(lists) -> { { key, threads, channels, [i] = the last entry of the i-th list }... }
local ordering = require "base.ordering"
local sequences = require "base.sequences"

local configurations = {}

function configurations.key(entry) return ("%s\0%s"):format(entry.threads, entry.channels) end

configurations.before = ordering.by("threads", "channels")

function configurations.of(lists)
  local out, by_key = {}, {}
  for i, list in ipairs(lists) do
    for _, entry in ipairs(list) do
      local key = configurations.key(entry)
      sequences.entry(out, by_key, key, function()
        return { key = key, threads = entry.threads, channels = entry.channels }
      end)[i] = entry
    end
  end
  return ordering.sort(out, configurations.before)
end

return configurations
