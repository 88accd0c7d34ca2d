-- Finds the collectives of a rank that overlap a stretch of its time, whole or in part. Their total time is
-- that of their union within the stretch; counts, names and percentages are of each collective.
local ordering = require "base.ordering"

local overlap = {}

-- The index of a trace's collectives for overlap.stretch; events and metadata are of the part
-- trace/runs/collective_events.lua.
function overlap.index(events, metadata)
  local list = {}
  for i, event in ipairs(events) do
    list[i] = { start = event.start, stop = event.start + event.duration, uid = event.uid,
      name = metadata[event.metadata].name or metadata[event.metadata].kernel }
  end
  table.sort(list, ordering.by("start", "uid"))
  -- latest_stop: the latest end of the collectives up to this one. If it is before a stretch of time, no
  -- collective up to this one overlaps the stretch.
  local latest = -math.huge
  for _, one in ipairs(list) do
    latest = math.max(latest, one.stop)
    one.latest_stop = latest
  end
  return list
end

-- The number of entries of `list` that start before `time`.
local function count_before(list, time)
  local low, high = 0, #list
  while low < high do
    local middle = (low + high + 1) // 2
    if list[middle].start < time then low = middle else high = middle - 1 end
  end
  return low
end

-- The collectives that overlap start..stop, by their start.
local function reaching(list, start, stop)
  local found, i = {}, count_before(list, stop)
  while i >= 1 and list[i].latest_stop > start do
    if list[i].stop > start then table.insert(found, 1, list[i]) end
    i = i - 1
  end
  return found
end

-- start..stop in µs -> { count, names (";"), percentage (of the one that overlaps most), collective (its
-- name), total_us (of the union) }; percentage is 0 and collective nil if none overlaps.
function overlap.stretch(list, start, stop)
  local found = reaching(list, start, stop)
  local names, most, most_name, total, covered_to = {}, 0, nil, 0, start
  for i, one in ipairs(found) do
    local from, to = math.max(one.start, start), math.min(one.stop, stop)
    names[i] = one.name
    if to - from > most then most, most_name = to - from, one.name end
    if to > covered_to then
      total = total + (to - math.max(from, covered_to))
      covered_to = to
    end
  end
  return { count = #found, names = table.concat(names, ";"), collective = most_name, total_us = total,
    percentage = stop > start and 100 * most / (stop - start) or 0 }
end

return overlap
