-- Mutants of a text of words, numbers, strings and signs: specs, headers, transcripts, journals.
--
--   local mutate = tokens.mutator { "nil", "function() end" }     -- words that its language has
--   local mutant = mutate(text)
local values = require "fuzz.structure.values"

local tokens = {}

local one_of, chance = values.one_of, values.chance

local patterns = { { "space", "^%s+" }, { "number", "^%d[%w%.]*" }, { "word", "^[%a_][%w_]*" },
  { "string", '^"[^"\n]*"' }, { "string", "^'[^'\n]*'" }, { "sign", "^." } }

-- The tokens of a text, { kind, text }.
local function split(text)
  local list, at = {}, 1
  while at <= #text do
    for _, pattern in ipairs(patterns) do
      local found = text:match(pattern[2], at)
      if found then
        list[#list + 1] = { kind = pattern[1], text = found }
        at = at + #found
        break
      end
    end
  end
  return list
end

local function joined(list)
  local out = {}
  for i, token in ipairs(list) do out[i] = token.text end
  return table.concat(out)
end

-- The place of a random token that is not space; nil without any.
local function place(list)
  for _ = 1, 20 do
    local at = #list > 0 and math.random(#list)
    if at and list[at].kind ~= "space" then return at end
  end
end

local function other_text(token, list, words)
  if token.kind == "number" and chance(0.8) then return values.number() end
  if token.kind == "string" and chance(0.8) then
    local quote = token.text:sub(1, 1)
    return quote .. values.any():gsub("[\n\"']", "") .. quote
  end
  if #words > 0 and chance(0.3) then return one_of(words) end
  if chance(0.5) then return list[place(list)].text end
  return values.any()
end

local ways = {
  function(list, at, words) list[at] = { kind = "word", text = other_text(list[at], list, words) } end,
  function(list, at) table.remove(list, at) end,
  function(list, at) table.insert(list, at, list[place(list)]) end,
  function(list, at, words)
    table.insert(list, at, { kind = "word", text = #words > 0 and one_of(words) or values.any() })
  end,
  function(list, at)
    local other = place(list)
    list[at], list[other] = list[other], list[at]
  end,
  function(list, at) -- a run of tokens, again and again
    local last = math.min(#list, at + math.random(0, 12))
    local run = joined(table.move(list, at, last, 1, {}))
    list[at] = { kind = "word", text = (run .. " "):rep(values.count()) .. list[at].text }
  end,
  function(list, at) -- brackets around a token
    local open = one_of { "{", "(", "[" }
    local close = ({ ["{"] = "}", ["("] = ")", ["["] = "]" })[open]
    local depth = chance(0.9) and math.random(3) or one_of { 150, 300, 100000 }
    list[at] = { kind = "word", text = open:rep(depth) .. list[at].text .. close:rep(depth) }
  end,
}

local function lines_of(text)
  local lines = {}
  for line in text:gmatch("[^\n]*\n?") do
    if line ~= "" then lines[#lines + 1] = line end
  end
  return lines
end

local line_ways = {
  function(lines, at) table.remove(lines, at) end,
  function(lines, at) lines[at] = lines[at]:rep(values.count()) end,
  function(lines, at)
    local other = math.random(#lines)
    lines[at], lines[other] = lines[other], lines[at]
  end,
  function(lines, at) lines[at] = lines[at]:gsub("\n", "\r\n") end,
  function(lines, at) lines[at] = lines[at]:gsub("\n", "") end,
  function(lines, at) table.insert(lines, at, lines[math.random(#lines)]) end,
}

local function with_other_lines(text)
  local lines = lines_of(text)
  if #lines == 0 then return values.any() end
  one_of(line_ways)(lines, math.random(#lines))
  return table.concat(lines)
end

local function with_other_tokens(text, words)
  local list = split(text)
  for _ = 1, chance(0.7) and 1 or math.random(4) do
    local at = place(list)
    if at then one_of(ways)(list, at, words) end
  end
  return joined(list)
end

-- A function text -> mutant. `words`: what may stand in place of a token.
function tokens.mutator(words)
  return function(text)
    if chance(0.2) then return with_other_lines(text) end
    if chance(0.1) then return values.damage(text) end
    return with_other_tokens(text, words or {})
  end
end

return tokens
