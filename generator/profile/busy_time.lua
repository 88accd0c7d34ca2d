-- Intervals of time: sums, unions, intersections, spans. A list of intervals is two columns { start, stop }
-- of whole nanoseconds, ascending by start; the optional `keep(i)` returns whether an interval counts.
local busy_time = {}

-- The sum of all lengths; overlapping time counts more than once.
function busy_time.sum(list, keep)
  local sum, start, stop = 0, list.start, list.stop
  for i = 1, #start do
    if not keep or keep(i) then sum = sum + stop[i] - start[i] end
  end
  return sum
end

-- The union of the intervals, as a list without overlap.
function busy_time.union(list, keep)
  local starts, stops, count = {}, {}, 0
  for i = 1, #list.start do
    if not keep or keep(i) then
      local start, stop = list.start[i], list.stop[i]
      if count > 0 and start <= stops[count] then
        if stop > stops[count] then stops[count] = stop end
      else
        count = count + 1
        starts[count], stops[count] = start, stop
      end
    end
  end
  return { start = starts, stop = stops }
end

-- The time in which both unions run.
function busy_time.common(a, b)
  local sum, i, k = 0, 1, 1
  while i <= #a.start and k <= #b.start do
    local from, to = math.max(a.start[i], b.start[k]), math.min(a.stop[i], b.stop[k])
    if to > from then sum = sum + to - from end
    if a.stop[i] < b.stop[k] then i = i + 1 else k = k + 1 end
  end
  return sum
end

-- From the first start to the last stop in all of these lists; nil: all are empty.
function busy_time.span(...)
  local first, last
  for _, list in ipairs { ... } do
    for i = 1, #list.start do
      if not first or list.start[i] < first then first = list.start[i] end
      if not last or list.stop[i] > last then last = list.stop[i] end
    end
  end
  return first and last - first
end

return busy_time
