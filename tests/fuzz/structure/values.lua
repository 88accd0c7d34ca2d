-- Values that readers get wrong: numbers at the limits of types, and texts that break lines, quotes, patterns
-- and encodings. All choices are by math.random, so that a seed repeats them.
local values = {}

local numbers = { "0", "1", "-1", "-0", "0.5", "1.5", "3", "7", "8", "1024", "1e3", "1e308", "1e-320",
  "1e999", "-1e308", "nan", "inf", "-inf", "0x10", "2147483647", "2147483648", "4294967295", "4294967296",
  "9007199254740993", "9223372036854775807", "9223372036854775808", "-9223372036854775808",
  "18446744073709551616", "00012", "+1", "1.", ".5", "1e", "1_000", "1,000", " 1", "1 ", "", ("9"):rep(400),
  "0." .. ("0"):rep(400) .. "1" }

local texts = { "", " ", "\0", "\xFF\xFE", "\xEF\xBB\xBF", "\xC3", "\xF4\x90\x80\x80", "\xE2\x80\xAE", "\r",
  "\n", "\r\n", "\t", "\27[31m", "\127", '"', "'", "\\", "`", "$(id)", "%s%n%d", "%", "${1}", "<script>",
  "&amp;", "../../x", "/dev/zero", "a/b", "-", "--", "nil", "null", "true", "=", "=1+1", ",", ";", "#", "//",
  "/*", "{", "}", "[", "]", "]]", "x y", "é", "日本", "[^a", "x=y", ("A"):rep(300), ("A"):rep(5000),
  ("é"):rep(3000), ("a,b "):rep(2000) }

function values.one_of(list) return list[math.random(#list)] end

-- Whether a thing with this probability happens.
function values.chance(probability) return math.random() < probability end

function values.number()
  if values.chance(0.2) then return tostring(math.random(-3, 300)) end
  if values.chance(0.1) then return ("%d"):format(1 << math.random(0, 62)) end
  return values.one_of(numbers)
end

function values.text() return values.one_of(texts) end

-- A number or a text.
function values.any() return values.chance(0.5) and values.number() or values.text() end

-- A count of repetitions: mostly a few, sometimes many.
function values.count()
  if values.chance(0.9) then return math.random(2, 5) end
  return values.one_of { 50, 300, 3000, 100000 }
end

-- Changes bytes, with no regard to structure: cuts the text, removes, repeats or replaces a part.
function values.damage(text)
  if #text == 0 then return values.any() end
  local from = math.random(#text)
  local to = math.min(#text, from + math.random(0, values.one_of { 1, 8, 200 }))
  local way = math.random(5)
  if way == 1 then return text:sub(1, from) end
  local part = ({ [2] = "", [3] = values.any(), [4] = text:sub(from, to):rep(values.count()),
    [5] = string.char(math.random(0, 255)) })[way]
  return text:sub(1, from - 1) .. part .. text:sub(to + 1)
end

return values
