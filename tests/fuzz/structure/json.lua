-- Mutants of JSON: other values and types, keys that are missing, double or another's, deep nesting, parts in
-- place of others. Reads loosely; a text that it cannot read is changed as tokens.
local tokens = require "fuzz.structure.tokens"
local values = require "fuzz.structure.values"

local json = {}

local one_of, chance = values.one_of, values.chance
local MOST_DEPTH = 100

-- ---- text to tree: { kind = "object" | "array" | "scalar", keys, text, node... } ------------------

local read

local function read_items(text, at, node, close, depth)
  at = text:match("^%s*()", at)
  if text:sub(at, at) == close then return node, at + 1 end
  while true do
    if node.keys then
      local key, after = text:match('^%s*("[^"]*")%s*:()', at)
      if not key then return nil end
      node.keys[#node + 1], at = key, after
    end
    local item, after = read(text, at, depth + 1)
    if not item then return nil end
    node[#node + 1] = item
    local sign
    sign, at = text:match("^%s*([,%]}])()", after)
    if sign == close then return node, at end
    if sign ~= "," then return nil end
  end
end

function read(text, at, depth)
  at = text:match("^%s*()", at)
  local first = text:sub(at, at)
  if depth > MOST_DEPTH then return nil end
  if first == "{" then return read_items(text, at + 1, { kind = "object", keys = {} }, "}", depth) end
  if first == "[" then return read_items(text, at + 1, { kind = "array" }, "]", depth) end
  local scalar, after = text:match('^("[^"\\]*")()', at)
  if not scalar then scalar, after = text:match('^("[^"]*")()', at) end
  if not scalar then scalar, after = text:match("^([%w%.+-]+)()", at) end
  if scalar then return { kind = "scalar", text = scalar }, after end
end

local function write(node, out)
  if node.kind == "scalar" then
    out[#out + 1] = node.text
    return out
  end
  out[#out + 1] = node.kind == "object" and "{" or "["
  for i, item in ipairs(node) do
    if i > 1 then out[#out + 1] = "," end
    if node.keys then out[#out + 1] = (node.keys[i] or '"new"') .. ": " end
    write(item, out)
  end
  out[#out + 1] = node.kind == "object" and "}" or "]"
  return out
end

-- ---- changes --------------------------------------------------------------------------------------

local function gather(node, nodes, parents)
  nodes[#nodes + 1] = node
  if #node > 0 then parents[#parents + 1] = node end
  for _, item in ipairs(node) do gather(item, nodes, parents) end
  return nodes, parents
end

local escapes = { "\\u0000", "\\ud800", "\\udc00\\ud800", "\\u202e", "\\n", "\\x", "\\", "\\/", "\\\"" }

local function scalar()
  local way = math.random(4)
  if way == 1 then return values.number() end
  if way == 2 then return one_of { "null", "true", "false", "{}", "[]", '""', "[[]]", '{"a": 1}',
  "[null]" } end
  if way == 3 then return '"' .. values.any():gsub('[\n"\\]', "") .. '"' end
  return '"' .. one_of(escapes) .. '"'
end

local function replace(node, with)
  for key in pairs(node) do node[key] = nil end
  for key, value in pairs(with) do node[key] = value end
end

local function text_of(node) return table.concat(write(node, {})) end

-- The place of an item; the item's keys go with it.
local function remove(parent, at)
  table.remove(parent, at)
  if parent.keys then table.remove(parent.keys, at) end
end

local function insert(parent, at, item, key)
  if parent.keys then table.insert(parent.keys, at, key) end
  table.insert(parent, at, item)
end

local ways = {
  function(node) replace(node, { kind = "scalar", text = scalar() }) end,
  function(node) -- another value of its own kind
    if node.kind ~= "scalar" then return end
    local is_text = node.text:sub(1, 1) == '"'
    node.text = is_text and '"' .. values.any():gsub('[\n"\\]', "") .. '"' or values.number()
  end,
  function(_, parent, at) remove(parent, at) end,
  function(_, parent, at) insert(parent, at, parent[at], parent.keys and parent.keys[at]) end,
  function(_, parent, at) -- the same key with another value
    insert(parent, at, { kind = "scalar", text = scalar() }, parent.keys and parent.keys[at])
  end,
  function(_, parent, at, nodes)
    if not parent.keys then return end
    local donor = one_of(nodes)
    parent.keys[at] = donor.keys and #donor > 0 and donor.keys[math.random(#donor)]
      or '"' .. values.text():gsub('[\n"\\]', "") .. '"'
  end,
  function(node, _, _, nodes) -- a copy of another part; never of itself, which would have no end
    replace(node, { kind = "scalar", text = text_of(one_of(nodes)) })
  end,
  function(node) -- deeper
    local depth = chance(0.8) and math.random(3) or one_of { 100, 1100, 100000 }
    local open, close = "[", "]"
    if chance(0.5) then open, close = '{"a": ', "}" end
    replace(node, { kind = "scalar", text = open:rep(depth) .. text_of(node) .. close:rep(depth) })
  end,
  function(node, parent, at) -- more of it
    local text = text_of(node)
    local key = parent.keys and "," .. (parent.keys[at] or '"new"') .. ":" or ","
    replace(node, { kind = "scalar", text = text .. (key .. text):rep(values.count()) })
  end,
  function(_, parent, at)
    local other = math.random(#parent)
    parent[at], parent[other] = parent[other], parent[at]
  end,
}

local damage = tokens.mutator { "null", "true", "{}", "[]", "{", "}", "[", "]", ",", ":", '""' }

function json.mutate(text)
  local root = read(text, 1, 0)
  if not root or #root == 0 or chance(0.1) then return damage(text) end
  for _ = 1, chance(0.7) and 1 or math.random(4) do
    local nodes, parents = gather(root, {}, {})
    if #parents == 0 then break end
    local parent = one_of(parents)
    local at = math.random(#parent)
    one_of(ways)(parent[at], parent, at, nodes)
  end
  return text_of(root) .. "\n"
end

return json
