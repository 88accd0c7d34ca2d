-- How ranks are placed: their number, and the number of nodes over which they are spread evenly; in names of
-- files and in texts. `nodes` is nil or 1 for ranks of one node.
local rank_placement = {}

-- Whether the ranks are on several nodes.
function rank_placement.spans(nodes) return (nodes or 1) > 1 end

-- The name of a file of rows, without its ending: benchmark.tp8.host, benchmark.tp8.nodes2.host.
function rank_placement.file_name(world_size, nodes, arch)
  local part = rank_placement.spans(nodes) and (".nodes%d"):format(nodes) or ""
  return ("benchmark.tp%d%s.%s"):format(world_size, part, arch)
end

-- The number of ranks, the number of nodes and the arch in the name of a file of rows, with or without its
-- folder; nil for other names.
function rank_placement.of_file_name(path)
  local size, rest = path:match("([^/]*)$"):match("^benchmark%.tp(%d+)%.(.+)%.csv$")
  if not size then return nil end
  local nodes, arch = rest:match("^nodes(%d+)%.(.+)$")
  return math.tointeger(tonumber(size)), nodes and math.tointeger(tonumber(nodes)) or 1, arch or rest
end

-- A placement as a value of a column of TP sizes: the number 8, or "8 on 2 nodes".
function rank_placement.size(world_size, nodes)
  return rank_placement.spans(nodes) and ("%d on %d nodes"):format(world_size, nodes) or world_size
end

-- The same of a block, slice or row: { world_size, nodes }.
function rank_placement.size_of(ranks) return rank_placement.size(ranks.world_size, ranks.nodes) end

-- The same with its unit: "TP 8", "TP 8 on 2 nodes".
function rank_placement.words(world_size, nodes)
  return "TP " .. rank_placement.size(world_size, nodes)
end

-- Whether placement `a`, { world_size, nodes }, comes before `b`: fewer nodes first.
function rank_placement.before(a, b)
  local left, right = a.nodes or 1, b.nodes or 1
  if left ~= right then return left < right end
  return a.world_size < b.world_size
end

return rank_placement
