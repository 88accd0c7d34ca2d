-- The configurations of sweeps, each a number of threads and of channels, in their order.
--
--   configurations.key(entry) -> a text, equal for entries of one configuration
--   configurations.before(a, b) -> whether a comes before b
--   configurations.of(lists) -> { { key, threads, channels, [i] = the last entry of the i-th list }... }
local ordering = require "base.ordering"

local configurations = {}

function configurations.key(entry) return ("%s\0%s"):format(entry.threads, entry.channels) end

configurations.before = ordering.by("threads", "channels")

function configurations.of(lists)
  local out, by_key = {}, {}
  for i, list in ipairs(lists) do
    for _, entry in ipairs(list) do
      local key = configurations.key(entry)
      if not by_key[key] then
        by_key[key] = { key = key, threads = entry.threads, channels = entry.channels }
        out[#out + 1] = by_key[key]
      end
      by_key[key][i] = entry
    end
  end
  table.sort(out, configurations.before)
  return out
end

return configurations
