-- Specs: what to sweep. Reads a spec, checks it, and fills in the defaults.
--
-- A spec is a Lua file that returns one table; tables/host/spec.lua is an example with every key explained.
-- It runs without any functions, and with limits on time and memory. load(path) returns it with canonical
-- names (lists/lists.lua) and sorted numbers, or raises an error with file and line.
local fail = require "base.fail"
local file = require "core.file"
local lists = require "lists.lists"
local lua_data = require "codec.lua_data"
local numbers = require "base.numbers"
local quantities = require "base.quantities"
local rows = require "core.rows"
local sequences = require "base.sequences"
local sorted_keys = require("base.ordering").sorted_keys
local splits = require "lists.splits"

local spec = {}

spec.default_table = lists.default_table

-- Larger messages than `message_bytes` are skipped. In each of `launches` launches of the bench a strategy is
-- called between `min_samples` and `max_samples` times per cell, and all strategies of a cell together take
-- about `cell_us`. A further limit, `seconds`, of a whole sweep (0: none), is no part of a loaded spec,
-- because rows do not depend on it: spec.load returns it apart.
spec.default_limits = { message_bytes = 64 << 20, min_samples = 20, max_samples = 2000, cell_us = 500000,
  launches = 5 }

-- The largest values that the bench accepts.
local largest_limits = { message_bytes = 1 << 40, min_samples = 1000000, max_samples = 1000000,
  cell_us = 1000000000000, launches = rows.LAUNCHES_MAX, seconds = 1000000000 }

local MOST_NODES = 65535 -- of a cell

-- ---- lines of the file, for messages ----------------------------------------------------------

-- The line on which `key` is set, or 1.
local function line_of(source, key)
  local line, pattern = 0, "%f[%w_]" .. key:gsub("%p", "%%%0") .. "%f[^%w_]['\"]?%s*%]?%s*="
  for text in (source.text .. "\n"):gmatch("(.-)\n") do
    line = line + 1
    local code = text:gsub("%-%-.*", "")
    if code:find(pattern) then return line end
  end
  return 1
end

local function reject(source, key, message, ...)
  fail.input("%s:%d: %s", source.path, line_of(source, key), message:format(...))
end

local function names_of(map) return table.concat(sorted_keys(map), ", ") end

-- ---- the checks, one per kind of value --------------------------------------------------------

local function check_list(source, key, value)
  if type(value) ~= "table" then reject(source, key, "%s is not a list; write %s = { ... }", key, key) end
  if #value == 0 then reject(source, key, "%s is empty; name at least one", key) end
  for index in pairs(value) do
    if math.type(index) ~= "integer" or index < 1 or index > #value then
      reject(source, key, "%s is a list; remove the key %s", key, tostring(index))
    end
  end
  for i = 1, #value do
    if value[i] == nil then
      reject(source, key, "%s has nil in place %d; remove it", key, i)
    end
  end
end

-- A number; that of a text with a unit, such as "8M"; any other value as it is.
local function size_of(value)
  return type(value) == "string" and value:find("%a") and numbers.size(value, 1, 1 << 41) or value
end

-- A list of different whole numbers from `low` to `high`; returns it sorted.
local function integers(low, high)
  return function(source, key, value)
    check_list(source, key, value)
    local sorted = {}
    for i, given in ipairs(value) do
      local number = size_of(given)
      if math.type(number) ~= "integer" or number < low or number > high then
        reject(source, key, "%s has %s; valid are whole numbers from %d to %d", key, tostring(number), low,
          high)
      end
      sorted[i] = number
    end
    table.sort(sorted)
    for i = 2, #sorted do
      if sorted[i] == sorted[i - 1] then reject(source, key, "%s has %d twice", key, sorted[i]) end
    end
    return sorted
  end
end

-- A whole number from `low` to `high`.
local function integer(low, high)
  return function(source, key, value)
    if math.type(value) ~= "integer" or value < low or value > high then
      reject(source, key, "%s is %s; valid is a whole number from %d to %d", key, tostring(value), low, high)
    end
    return value
  end
end

local function check_name(source, key, kind, name)
  local row = type(name) == "string" and lists.find(kind, name)
  if not row then
    reject(source, key, "%s has %s; valid: %s", key, tostring(name), table.concat(lists.names(kind), ", "))
  end
  return row.name
end

-- A list of different names of lists[kind]; returns the canonical ones in the list's order.
local function names(kind)
  return function(source, key, value)
    check_list(source, key, value)
    local wanted = {}
    for _, name in ipairs(value) do
      local canonical = check_name(source, key, kind, name)
      if wanted[canonical] then reject(source, key, "%s has %s twice", key, canonical) end
      wanted[canonical] = true
    end
    return sequences.filter(lists.names(kind), function(name) return wanted[name] end)
  end
end

local function check_arch(source, key, value)
  if type(value) ~= "string" or not lists.arch(value) then
    reject(source, key, "unknown arch %s; valid: host, host-NAME, sm and a number", tostring(value))
  end
  return value
end

-- Raises unless the value of `key` is a table with keys of `known` only. `example`: of its content.
local function check_map(source, key, value, known, example)
  if type(value) ~= "table" then
    reject(source, key, "%s is not a table; write %s = { %s }", key, key, example)
  end
  for name in pairs(value) do
    if known[name] == nil then
      reject(source, tostring(name), 'unknown key "%s" in %s; valid keys: %s', tostring(name), key,
        names_of(known))
    end
  end
end

local function check_limits(source, key, value)
  check_map(source, key, value, largest_limits, "...")
  local limits = sequences.merged(spec.default_limits)
  for name, given in pairs(value) do
    local limit = name == "message_bytes" and size_of(given) or given
    local least = name == "seconds" and 0 or 1
    if math.type(limit) ~= "integer" or limit < least or limit > largest_limits[name] then
      reject(source, name, "%s is %s; valid is a whole number from %d to %d", name, tostring(limit), least,
        largest_limits[name])
    end
    limits[name] = limit
  end
  if limits.min_samples > limits.max_samples then
    reject(source, "min_samples", "min_samples is %d, above max_samples, %d", limits.min_samples,
      limits.max_samples)
  end
  return limits
end

local function check_table(source, key, value)
  local kinds = { dtype = "dtypes", mode = "modes", op = "ops" }
  check_map(source, key, value, kinds, "dtype = ...")
  local checked = {}
  for name, text in pairs(value) do checked[name] = check_name(source, name, kinds[name], text) end
  return checked
end

-- Checks the types; choose/settings.lua checks the values.
local function check_choice(source, key, value)
  local known = { numerics = "string", workload = "string", at = "string", regret = "number" }
  check_map(source, key, value, known, "numerics = ...")
  for name, text in pairs(value) do
    if type(text) ~= known[name] then
      reject(source, name, "%s is %s; valid is a %s", name, tostring(text),
        known[name] == "string" and "text" or "number")
    end
  end
  return value
end

-- Weights of the destinations of an alltoallv.
local function check_splits(source, key, value)
  if not splits.read(tostring(value)) then
    reject(source, key, "splits is %s; valid are %s", tostring(value), splits.RIGHT)
  end
  return value
end

local keys = {
  splits = check_splits,
  arch = check_arch,
  tp = integers(2, lists.most_ranks),
  nodes = integers(1, lists.most_ranks),
  ranks_per_node = integer(1, lists.most_ranks_per_node),
  predict = integers(3, MOST_NODES),
  dtypes = names("dtypes"),
  fusions = names("fusions"),
  hidden_sizes = integers(1, 1 << 24),
  num_tokens = integers(1, 1 << 24),
  strategies = names("strategies"),
  limits = check_limits,
  table = check_table,
  choice = check_choice,
}
local required = { "arch", "tp", "hidden_sizes", "num_tokens" }

-- ---- placements -------------------------------------------------------------------------------

-- Why `tp` ranks cannot be on `nodes` nodes with `per_node` ranks each (nil: any number), or nil.
local function unfit(tp, nodes, per_node)
  if tp % nodes ~= 0 then return ("%d ranks do not divide among %d nodes"):format(tp, nodes) end
  if per_node and tp ~= nodes * per_node then
    local words = nodes == 1 and "1 node with ranks_per_node = %d has %d ranks"
      or nodes .. " nodes with ranks_per_node = %d have %d ranks"
    return words:format(per_node, nodes * per_node)
  end
  if tp // nodes > lists.most_ranks_per_node then
    return ("%d ranks on %s; a node has %d at most"):format(tp, quantities.counted(nodes, "node"),
      lists.most_ranks_per_node)
  end
end

-- The combinations of TP size and number of nodes of a spec, by nodes, then TP size: { { world_size, nodes,
-- ranks_per_node }... } of those that are measured, and { { world_size, nodes, reason }... } of the others. A
-- spec without nodes has one node.
function spec.placements(found)
  local placements, skipped = {}, {}
  for _, nodes in ipairs(found.nodes or { 1 }) do
    for _, tp in ipairs(found.tp) do
      local reason = unfit(tp, nodes, found.ranks_per_node)
      if reason then
        skipped[#skipped + 1] = { world_size = tp, nodes = nodes, reason = reason }
      else
        placements[#placements + 1] = { world_size = tp, nodes = nodes, ranks_per_node = tp // nodes }
      end
    end
  end
  return placements, skipped
end

-- ---- reading ----------------------------------------------------------------------------------

-- The `table` of a spec with its defaults; `dtype` is that of the data type.
local function full_table(given, dtype)
  local default = spec.default_table
  given = given or {}
  return { dtype = given.dtype or dtype, op = given.op or default.op, mode = given.mode or default.mode }
end

-- Numbers of nodes that are measured are not predicted, nor are those between them.
local function check_predict(source, found)
  local largest = found.nodes and found.nodes[#found.nodes] or 1
  if found.predict and found.predict[1] <= largest then
    reject(source, "predict", "predict has %d; valid are numbers of nodes above the largest measured one, "
      .. "%d", found.predict[1], largest)
  end
end

-- A spec without nodes has TP sizes of one node only.
local function check_placements(source, found)
  local largest = found.tp[#found.tp]
  if not found.nodes and largest > lists.most_ranks_per_node then
    reject(source, "tp", "tp has %d; one node has %d ranks at most, and more need nodes = { ... }", largest,
      lists.most_ranks_per_node)
  end
  if #spec.placements(found) == 0 then
    reject(source, found.nodes and "nodes" or "ranks_per_node", "no TP size fits these nodes; tp is nodes x "
      .. "ranks_per_node, the same number of ranks on each node, at most %d", lists.most_ranks_per_node)
  end
end

local function fill_in(source, found)
  found.dtypes = found.dtypes or { spec.default_table.dtype }
  found.limits = found.limits or check_limits(source, "limits", {})
  local default = spec.default_table
  local usual = lists.contains(found.dtypes, default.dtype) and default.dtype or found.dtypes[1]
  found.table = full_table(found.table, usual)
  found.fusions = found.fusions or
    (found.table.op == spec.default_table.op and lists.names("fusions") or { "NONE" })
  found.strategies = found.strategies or
    lists.strategies_of(lists.arch(found.arch).backend, true, found.table.op, found.nodes)
  if (found.splits ~= nil) ~= (lists.find("ops", found.table.op).splits == true) then
    reject(source, "splits", "an alltoallv needs splits, such as splits = \"3:1\", and no other op has them")
  end
  check_placements(source, found)
  check_predict(source, found)
  if not lists.contains(found.dtypes, found.table.dtype) then
    reject(source, "dtype", "table.dtype is %s, which is not among dtypes", found.table.dtype)
  end
end

local function check_keys(source, given)
  local found = {}
  for key, value in pairs(given) do
    if not keys[key] then
      reject(source, tostring(key), 'unknown key "%s"; valid keys: %s', tostring(key), names_of(keys))
    end
    found[key] = keys[key](source, key, value)
  end
  return found
end

-- Reads the keys of the spec at `path`. Returns them, and the source for further messages.
local function read(path)
  local source = { path = path, text = fail.unless(file.read(path)) }
  return check_keys(source, lua_data.run(path, source.text)), source
end

-- Returns the spec with its defaults, and limits.seconds (nil: not given).
local function complete(found, source)
  for _, key in ipairs(required) do
    if found[key] == nil then
      fail.input("%s:1: %s is missing; for an example see tables/host/spec.lua", source.path, key)
    end
  end
  fill_in(source, found)
  local seconds = found.limits.seconds
  found.limits.seconds = nil
  return found, seconds
end

-- Raises an error if the backend of the spec's arch cannot measure what the spec requires.
local function check_measurable(found, source)
  local backend = lists.arch(found.arch).backend
  local known = lists.strategies_of(backend, false, found.table.op)
  if #known == 0 then
    reject(source, "arch", "%s is measured by the backend %s, which this gentables lacks; %s", found.arch,
      backend, "rows of other tools need no sweep")
  end
  for _, name in ipairs(found.strategies) do
    if not lists.contains(known, name) then
      reject(source, "strategies", "strategies has %s, which %s does not measure; valid: %s", name,
        found.arch, table.concat(known, ", "))
    end
  end
  for key, kind in pairs { op = "ops", mode = "modes" } do
    if not lists.contains(lists.find(kind, found.table[key]).measured_by or {}, backend) then
      reject(source, key, "%s does not measure the %s %s", found.arch, key, found.table[key])
    end
  end
  return found
end

-- Reads the spec at `path` for a sweep. Returns { arch, tp, nodes (nil: { 1 }), ranks_per_node (nil: any),
-- predict (numbers of nodes; nil: none), dtypes, fusions, hidden_sizes, num_tokens, strategies, limits,
-- table, splits (nil: none), choice (nil: not given) }, and limits.seconds (nil: not given; 0: no limit).
function spec.load(path)
  local keys_of, source = read(path)
  local found, seconds = complete(keys_of, source)
  return check_measurable(found, source), seconds
end

-- Like spec.load, but for tables only: beside rows of another tool a spec may have nothing but `table`, and
-- then only that is returned.
function spec.load_for_tables(path)
  local found, source = read(path)
  local first = next(found)
  if first == "table" and next(found, first) == nil then
    return { table = full_table(found.table, spec.default_table.dtype) }
  end
  return (complete(found, source))
end

-- The path of the workload that a spec in `folder` names; nil: none.
function spec.workload_path(found, folder)
  local name = found.choice and found.choice.workload
  return name and (name:sub(1, 1) == "/" and name or folder .. "/" .. name)
end

-- The spec that a sweep recorded in the provenance at `path`. `keys_of`: the field spec.keys of its record.
-- Raises an error if that is no complete spec.
function spec.recorded(path, keys_of)
  local source = { path = path, text = "" }
  return (complete(check_keys(source, keys_of), source))
end

return spec
