-- Rules for NCCLX's tuner. They go by bytes for each rank: a message's bytes divided by the ranks, rounded
-- down. A rule begins at the first such quotient of which all messages are its own; the few messages with a
-- smaller one get the rule before.
local ncclx = {}

-- The bytes for each rank of a segment of messages, as an interval; nil: it has no quotient of its own.
local function interval_of(segment, ranks)
  local first = (segment.first + ranks - 1) // ranks
  if not segment.last then return ("[%d,)"):format(first) end
  local last = (segment.last + ranks) // ranks - 1
  return last >= first and ("[%d,%d]"):format(first, last) or nil
end

-- The rules of a view by message size: { bytes, algorithm, protocol, channels, nodes, local_ranks }, of which
-- the first that matches counts.
function ncclx.rules(view)
  local rules = {}
  local function add(tp_tables, nodes)
    for _, tp_table in ipairs(tp_tables) do
      for _, segment in ipairs(tp_table.segments) do
        local bytes, nccl = interval_of(segment, tp_table.tp), segment.strategy.nccl
        rules[#rules + 1] = bytes and { bytes = bytes, algorithm = nccl.algorithm, protocol = nccl.protocol,
          channels = nccl.channels, nodes = nodes, local_ranks = tp_table.tp // nodes } or nil
      end
    end
  end
  add(view.tp_tables, 1)
  for _, part in ipairs(view.on_nodes) do add(part.tp_tables, part.nodes) end
  return rules
end

return ncclx
