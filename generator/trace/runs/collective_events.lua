-- The collectives of one trace as a part (trace/runs/trace_source.lua): their events in columns, which take
-- less time to read than a table for each event, and their metadata.
local collective_events = { field = "collectives" }

local COLUMNS = { "start", "duration", "stream", "uid", "metadata" }

-- { columns = { start, duration (us), stream, uid, metadata, each a list with a value for each event },
-- metadata }; events and metadata as of t:collectives() in trace/analysis/collectives.cpp.
function collective_events.collect(rank)
  local events, metadata = rank.trace:collectives()
  local columns = {}
  for _, name in ipairs(COLUMNS) do
    local column = {}
    for i, event in ipairs(events) do column[i] = event[name] end
    columns[name] = column
  end
  return { columns = columns, metadata = metadata }
end

-- The events of these columns, a table for each.
function collective_events.list(columns)
  local out = {}
  local start, duration, stream = columns.start, columns.duration, columns.stream
  local uid, metadata = columns.uid, columns.metadata
  for i = 1, #start do
    out[i] = { start = start[i], duration = duration[i], stream = stream[i], uid = uid[i],
      metadata = metadata[i] }
  end
  return out
end

return collective_events
