-- Rules of Open MPI's coll/tuned as JSON, version 3 (from 6.0 on): the first entry that matches the number of
-- ranks, and in it the first rule that matches the message. An unknown key could change the meaning of a
-- rule, so it is refused.
local json = require "codec.json"
local ompi_config = require "reading.ompi_config"

local VERSION = 3
local KNOWN = {
  [""] = { rule_file_version = true, module = true, collectives = true },
  entry = { comm_size_min = true, comm_size_max = true, comm_rank_distribution = true, rules = true },
  rule = { msg_size_min = true, msg_size_max = true, alg = true, reqs = true, faninout = true },
}

local function is_object(value) return type(value) == "table" and value ~= json.null end

local function check_keys(source, where, value, known)
  if not is_object(value) then source:fail(nil, "%s is no object", where) end
  local names = {}
  for name in pairs(value) do names[#names + 1] = tostring(name) end
  table.sort(names)
  for _, name in ipairs(names) do
    if not known[name] then source:fail(nil, "%s has an unknown %s", where, source.shown(name)) end
  end
end

-- A bound; "inf" is the largest number; `default`: the value of a missing bound.
local function bound(source, where, value, default)
  if value == nil then return default end
  if value == "inf" then return math.maxinteger end
  if math.type(value) ~= "integer" or value < 0 then
    source:fail(nil, '%s is %s; a whole number or "inf" is required', where, source.shown(value))
  end
  return value
end

local function rule_of(source, where, rule)
  check_keys(source, where, rule, KNOWN.rule)
  if type(rule.alg) ~= "string" and math.type(rule.alg) ~= "integer" then
    source:fail(nil, "%s.alg is %s; the name of an algorithm is required", where, source.shown(rule.alg))
  end
  if (rule.reqs or 0) ~= 0 or (rule.faninout or 0) ~= 0 then
    source:leave_out("fan-in, segment size or requests: of a rule")
  end
  local number = type(rule.alg) == "string" and ompi_config.number(source, nil, rule.alg) or rule.alg
  return { from = bound(source, where .. ".msg_size_min", rule.msg_size_min, 0),
    to = bound(source, where .. ".msg_size_max", rule.msg_size_max, math.maxinteger),
    strategy = ompi_config.strategy(source, nil, number) }
end

local function entry_of(source, where, entry)
  check_keys(source, where, entry, KNOWN.entry)
  local ranks = entry.comm_rank_distribution
  if ranks ~= nil and ranks ~= "any" then
    source:fail(nil, '%s.comm_rank_distribution is %s; a table has no place but for "any"', where,
      source.shown(ranks))
  end
  if not is_object(entry.rules) then source:fail(nil, "%s has no rules", where) end
  local out = { from = bound(source, where .. ".comm_size_min", entry.comm_size_min, 0),
    to = bound(source, where .. ".comm_size_max", entry.comm_size_max, math.maxinteger), rules = {} }
  for i, rule in ipairs(entry.rules) do
    out.rules[i] = rule_of(source, ("%s.rules[%d]"):format(where, i - 1), rule)
  end
  return out
end

-- The numbers of ranks that entries name; for a range, --tp gives them.
local function sizes_of(source, entries)
  local sizes = {}
  for i, entry in ipairs(entries) do
    if entry.from ~= entry.to and not source.options.tp then
      source:fail(nil, "collectives.allreduce[%d] is for a range of ranks; give them with --tp N,N", i - 1)
    end
    sizes[#sizes + 1] = entry.from
  end
  table.sort(sizes)
  return sizes
end

return function(source)
  local document, message = json.decode(source.text)
  if not document then source:fail(nil, "is no JSON, or cut off: %s", message) end
  local version = is_object(document) and document.rule_file_version
  if version ~= VERSION then
    source:fail(nil, "is of version %s; version %d is required", tostring(version), VERSION)
  end
  check_keys(source, "the file", document, KNOWN[""])
  if document.module ~= nil and document.module ~= "tuned" then
    source:fail(nil, "is for module %s; module tuned is required", source.shown(document.module))
  end
  local list = is_object(document.collectives) and document.collectives.allreduce
  if not is_object(list) or #list == 0 then source:fail(nil, "has no rules for allreduce") end
  local entries = {}
  for i, entry in ipairs(list) do
    entries[i] = entry_of(source, ("collectives.allreduce[%d]"):format(i - 1), entry)
  end
  return ompi_config.cells(source, sizes_of(source, entries), function(size)
    for _, entry in ipairs(entries) do
      if entry.from <= size and size <= entry.to then return entry.rules end
    end
  end)
end
