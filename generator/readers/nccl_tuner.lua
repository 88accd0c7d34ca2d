-- The file of NCCL's example tuner: collective,min,max,algorithm,protocol,channels,nodes,ranks[,pipeOps
-- [,regBuff]]. The plugin silently reads an unknown word as ring, simple or allreduce; here it is refused.
-- Rules for any number of ranks need --tp.
local lists = require "lists.lists"
local rank_placement = require "lists.rank_placement"
local ranges = require "reading.ranges"
local sequences = require "base.sequences"

local MOST_CHARACTERS = 255
local COLLECTIVES = { allreduce = true, broadcast = true, reduce = true, allgather = true,
  reducescatter = true }
local MOST_BYTES = math.maxinteger

-- A bound. The plugin reads unsigned 64-bit numbers; larger ones become the largest signed one here.
local function bound(source, line, what, text)
  if text:find("^%d+$") and #text >= 19 and not math.tointeger(tonumber(text)) then return MOST_BYTES end
  return source:whole(line, what, text, 0)
end

local function strategy_of(source, line, fields)
  local algorithm, protocol = fields[4], fields[5]
  local channels = source:whole(line, "channels", fields[6], -1, 1024)
  local known = { algorithm = {}, protocol = {} }
  for _, row in ipairs(lists.nccl.algorithms) do known.algorithm[row.tuner] = true end
  for _, row in pairs(lists.nccl.protocols) do known.protocol[row.tuner] = true end
  if not known.algorithm[algorithm] then
    source:fail(line, "unknown algorithm %s of an allreduce, which the plugin would take for ring",
      source.shown(algorithm))
  elseif not known.protocol[protocol] then
    source:fail(line, "unknown protocol %s, which the plugin would take for simple", source.shown(protocol))
  end
  return source:nccl_strategy(line, algorithm, protocol, channels, tostring)
end

local function rule_of(source, line, text)
  if #text > MOST_CHARACTERS then
    source:fail(line, "%d characters; the plugin reads %d", #text, MOST_CHARACTERS)
  end
  local fields = source.fields(text)
  if #fields < 8 or #fields > 10 then source:fail(line, "%d fields; 8 to 10 are required", #fields) end
  if not COLLECTIVES[fields[1]] then
    source:fail(line, "unknown collective %s, which the plugin would take for allreduce",
      source.shown(fields[1]))
  end
  local rule = { line = line, from = bound(source, line, "min_bytes", fields[2]),
    to = bound(source, line, "max_bytes", fields[3]),
    nodes = source:whole(line, "nNodes", fields[7], -1, 1 << 20),
    ranks = source:whole(line, "nRanks", fields[8], -1, 65535) }
  for index, name in pairs { [9] = "numPipeOps", [10] = "regBuff" } do
    if fields[index] then source:whole(line, name, fields[index], -1, 1 << 20) end
  end
  if rule.from > rule.to then source:fail(line, "min_bytes %d is above max_bytes %d", rule.from, rule.to) end
  if fields[1] ~= "allreduce" then
    source:leave_out("of other collectives than allreduce")
    return nil
  end
  rule.strategy = strategy_of(source, line, fields)
  return rule
end

-- Adds a placement to a list, { { world_size, nodes, line }... }, that does not have it.
local function add_placement(placements, ranks, nodes, line)
  local is_there = sequences.any(placements, function(placement)
    return placement.world_size == ranks and placement.nodes == nodes
  end)
  if not is_there then table.insert(placements, { world_size = ranks, nodes = nodes, line = line }) end
end

-- The placements that have a table: --tp and --nodes, or those that rules name. Rules for any number of nodes
-- are those of one node.
local function placements_of(source, rules)
  local out, given, has = {}, source.options.tp, {}
  for _, rule in ipairs(rules) do
    local nodes = rule.nodes > 0 and rule.nodes or source.options.nodes or 1
    for _, size in ipairs(rule.ranks > 0 and { rule.ranks } or given or {}) do
      local is_wanted = (not given or lists.contains(given, size))
        and (source.options.nodes or nodes) == nodes
      if is_wanted then add_placement(out, size, nodes, rule.line) end
      has[size] = has[size] or is_wanted
    end
  end
  for _, size in ipairs(given or {}) do
    if not has[size] then add_placement(out, size, source.options.nodes or 1) end
  end
  if #out == 0 then source:fail(nil, "its rules are for any number of ranks; give them with --tp N,N") end
  table.sort(out, rank_placement.before)
  return out
end

-- Those rules that hold for a placement.
local function rules_of(rules, placement)
  return sequences.filter(rules, function(rule)
    return (rule.ranks == -1 or rule.ranks == placement.world_size)
      and (rule.nodes == -1 or rule.nodes == placement.nodes)
  end)
end

return function(source)
  local rules, cells = {}, {}
  for line, text in source:lines() do
    if text:find("^%s*[^#%s]") then rules[#rules + 1] = rule_of(source, line, text) end
  end
  if #rules == 0 then source:fail(nil, "has no rule for allreduce") end
  for _, placement in ipairs(placements_of(source, rules)) do
    local fields = source:placement(placement.line, placement.world_size, placement.nodes)
    sequences.append(cells, ranges.cells(source, rules_of(rules, placement), fields.world_size, fields.nodes))
  end
  return { tables = { { cells = cells } } }
end
