-- Reads thresholds.json, and looks strategies up by bytes, as python/gentables_thresholds.py does.
--
--   local document = thresholds.read(path, text)
--   local rule, index = thresholds.rule_of(document, 8, 65536)     -- nil: the document's fallback
--   local rule, index = thresholds.rule_of(document, 8, 65536, 2)  -- for 8 ranks on 2 nodes
local fail = require "base.fail"
local json = require "codec.json"
local rank_placement = require "lists.rank_placement"
local sorted_keys = require("base.ordering").sorted_keys

local thresholds = {}

local FORMAT, VERSION = "gentables thresholds", 1
local WAY_OUT = "gentables generate --formats thresholds writes such a file"

local function is_object(value) return type(value) == "table" and getmetatable(value) == nil end

local function is_list(value)
  return type(value) == "table" and value ~= json.null and not is_object(value)
end

local function is_text(value) return type(value) == "string" end

-- A split point: a whole number of bytes above the one before it; only the last rule has none.
local function check_end(where, rule, before, is_last)
  local last = rule.max_bytes
  if last == nil then last = json.null end
  if is_last ~= (last == json.null) then fail.input("%s: only the last rule has no max_bytes", where) end
  if is_last then return nil end
  if math.type(last) ~= "integer" or last <= before then
    fail.input("%s: max_bytes must be whole numbers that ascend", where)
  end
  return last
end

local function check_rules(where, of_tp_size)
  local rules = is_object(of_tp_size) and of_tp_size.rules
  if not is_list(rules) or #rules == 0 then fail.input("%s: a list of rules is required", where) end
  local before = -1
  for index, rule in ipairs(rules) do
    local of_rule = ("%s, rule %d"):format(where, index)
    if not is_object(rule) or not is_text(rule.strategy) then
      fail.input("%s: the name of a strategy is required", of_rule)
    end
    before = check_end(of_rule, rule, before, index == #rules)
  end
end

-- Checks the rules of each TP size in an object; `of`: words for the ranks in it.
local function check_sizes(path, world_sizes, of)
  for _, world_size in ipairs(sorted_keys(world_sizes)) do
    if not world_size:find("^[1-9]%d*$") then fail.input("%s: %q is no TP size", path, world_size) end
    check_rules(("%s: TP size %s%s"):format(path, world_size, of), world_sizes[world_size])
  end
end

-- Checks the rules for ranks on several nodes: { "2" = { TP size = ... }... }.
local function check_nodes(path, nodes)
  if not is_object(nodes) then fail.input("%s: nodes is no object; %s", path, WAY_OUT) end
  for _, count in ipairs(sorted_keys(nodes)) do
    if not count:find("^[1-9]%d*$") or not is_object(nodes[count]) then
      fail.input("%s: nodes: %q is no number of nodes with rules", path, count)
    end
    check_sizes(path, nodes[count], (" on %s nodes"):format(count))
  end
end

-- The document in `text`, checked. `path` is for messages. Raises if it is damaged, or of another version.
function thresholds.read(path, text)
  local document, problem = json.decode(text)
  if problem then fail.input("%s: is not JSON (%s); %s", path, problem, WAY_OUT) end
  if not is_object(document) or document.format ~= FORMAT or not is_object(document.world_sizes) then
    fail.input("%s: is no file of thresholds; %s", path, WAY_OUT)
  end
  if document.version ~= VERSION then
    fail.input("%s: version %d is required; %s", path, VERSION, WAY_OUT)
  end
  for _, key in ipairs { "dtype", "op", "fallback" } do
    if not is_text(document[key]) then fail.input("%s: a name as %s is required; %s", path, key, WAY_OUT) end
  end
  check_sizes(path, document.world_sizes, "")
  if document.nodes ~= nil then check_nodes(path, document.nodes) end
  return document
end

-- The rule of a checked document for a size on each rank, and its index; nil if it has no rules for the TP
-- size on that many nodes (nil: one). A rule is for sizes up to its max_bytes, inclusive.
function thresholds.rule_of(document, world_size, size_bytes, nodes)
  local world_sizes = document.world_sizes
  if rank_placement.spans(nodes) then world_sizes = (document.nodes or {})[tostring(nodes)] or {} end
  local of_tp_size = world_sizes[tostring(world_size)]
  for index, rule in ipairs(of_tp_size and of_tp_size.rules or {}) do
    if math.type(rule.max_bytes) ~= "integer" or size_bytes <= rule.max_bytes then return rule, index end
  end
end

return thresholds
