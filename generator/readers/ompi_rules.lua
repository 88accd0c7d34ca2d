-- Rules of Open MPI's coll/tuned: classic, and version 2 (from 5.0.7 on), which has a fifth number in a rule.
-- A communicator takes the rules of the largest size up to its own. Other collectives are skipped. A table
-- cannot hold fan-in, segment size and requests; the reader reports them.
local ompi_config = require "reading.ompi_config"

local ALLREDUCE, MOST_COLLECTIVES, MOST_RULES = 2, 64, 100000
local NEWEST = 2

-- All numbers of the file with their lines, and the version in its first line.
local function numbers_of(source)
  local numbers, version, seen = {}, 1, false
  for line, text in source:lines() do
    local words = source.words((text:gsub("#.*", "")))
    local found = not seen and words[1] and words[1]:match("^rule%-file%-version%-(.+)$")
    seen = seen or #words > 0
    if found then
      version = source:whole(line, "rule-file-version", found)
      if version > NEWEST then
        source:fail(line, "is of version %d; 1 and 2, and JSON, are known", version)
      end
    else
      for _, word in ipairs(words) do
        numbers[#numbers + 1] = { line = line, value = source:whole(line, "a field", word, 0) }
      end
    end
  end
  return numbers, version
end

local function taker(source, numbers)
  local at = 0
  local last = numbers[#numbers] and numbers[#numbers].line or 1
  local function take(what, most)
    at = at + 1
    local number = numbers[at]
    if not number then source:fail(last, "the file ends before %s", what) end
    if most and number.value > most then
      source:fail(number.line, "%s is %d; maximum %d", what, number.value, most)
    end
    return number.value, number.line
  end
  return take, function() return numbers[at + 1] end
end

-- The rules of one communicator size, as ranges.
local function rules_of(source, take, version, is_allreduce)
  local count, rules = take("the number of message rules", MOST_RULES), {}
  for i = 1, count do
    local from, line = take("a message size")
    local algorithm, extra = take("an algorithm", 1 << 30), 0
    for _, what in ipairs { "fan in/out", "a segment size", "a number of requests" } do
      if version == 2 or what ~= "a number of requests" then extra = extra | take(what) end
    end
    if i == 1 and from ~= 0 then source:fail(line, "the first message size is %d; it must be 0", from) end
    if i > 1 and from <= rules[i - 1].from then
      source:fail(line, "message size %d after %d; they ascend", from, rules[i - 1].from)
    end
    if i > 1 then rules[i - 1].to = from - 1 end
    if is_allreduce and extra > 0 then source:leave_out("fan-in, segment size or requests: of a rule") end
    rules[i] = { line = line, from = from, to = math.maxinteger,
      strategy = is_allreduce and ompi_config.strategy(source, line, algorithm) or nil }
  end
  return rules
end

-- The rules of all communicator sizes of a collective: size -> rules, and the sizes.
local function collective(source, take, version, is_allreduce)
  local by_size, sizes = {}, {}
  for _ = 1, take("the number of communicator sizes", MOST_RULES) do
    local size, line = take("a communicator size", 65535)
    if by_size[size] then source:fail(line, "communicator size %d occurs twice", size) end
    sizes[#sizes + 1] = size
    by_size[size] = rules_of(source, take, version, is_allreduce)
  end
  table.sort(sizes)
  return by_size, sizes
end

return function(source)
  local numbers, version = numbers_of(source)
  local take, rest = taker(source, numbers)
  local by_size, sizes
  for _ = 1, take("the number of collectives", MOST_COLLECTIVES) do
    local id, line = take("the id of a collective", MOST_COLLECTIVES)
    if id == ALLREDUCE and by_size then source:fail(line, "allreduce (2) occurs twice") end
    local rules, found = collective(source, take, version, id == ALLREDUCE)
    if id == ALLREDUCE then by_size, sizes = rules, found end
  end
  if rest() then
    source:fail(rest().line, "%d follows the last rule; remove it", rest().value)
  end
  if not by_size or #sizes == 0 then source:fail(nil, "has no rules for allreduce (2)") end
  return ompi_config.cells(source, sizes, function(size)
    local best
    for _, known in ipairs(sizes) do
      if known <= size then best = by_size[known] end
    end
    return best
  end)
end
