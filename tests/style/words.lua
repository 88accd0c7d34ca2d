-- The words that docs/glossary.md forbids ("Words that this project does not use"): comments and pages use
-- others. ALLOWED lists the lines that keep one, with the reason. Prints the other ones; ends with 1 if there
-- are any, or if an entry of ALLOWED has no reason, too many lines, or no file.
--
--   gentables lua tests/style/words.lua SOURCES
local file = require "core.file"

local sources = arg[1] .. "/"
local GLOSSARY = "docs/glossary.md"
local PROOF = "the file is an input of slow proofs"

-- { file = { number of lines, reason } }.
local ALLOWED = {
  ["tests/stand_ins/engine/engine.cpp"] = { 1, PROOF },
}

-- How comments begin, by the ending of a file's name; "" has scripts without one and CMakeLists.txt.
local COMMENTS = {
  lua = { "%-%-" }, c = { "//", "/%*" }, h = { "//", "/%*" }, cpp = { "//", "/%*" }, cu = { "//", "/%*" },
  js = { "//", "/%*" }, css = { "/%*" }, pml = { "/%*", "//" }, sh = { "#" }, py = { "#" }, cmake = { "#" },
  txt = { "#" }, [""] = { "#" }, tmpl = { "//", "/%*", "#", "%-%-" }, md = {},
}

local function forbidden_words()
  local words, text = {}, assert(file.read(sources .. GLOSSARY))
  local section = text:match("\n## Words that this project does not use\n(.*)$")
  for word in (section or ""):gmatch("\n| ([%l ]+) | [^\n]+ |") do
    if word ~= "word" then words[#words + 1] = "%f[%w]" .. word:gsub(" ", "%%s+") .. "%f[%W]" end
  end
  assert(#words > 5, GLOSSARY .. ": has no table of words")
  return words
end

-- The comment of a line, or nil. `is_open`: whether a comment of several lines goes on here, and after it.
local function comment_of(line, marks, is_open)
  if is_open then return line, not line:find("*/", 1, true) end
  for _, mark in ipairs(marks) do
    local from = line:find("^%s*" .. mark) or line:find("%s" .. mark .. "%s")
    if from then
      local comment = line:sub(from)
      return comment, mark == "/%*" and not comment:find("*/", 1, true)
    end
  end
  return nil, false
end

-- Prose of a page: not what is indented by four spaces, and not in a fence.
local function prose_of(line, is_fenced)
  if line:find("^%s*```") then return nil, not is_fenced end
  return not is_fenced and not line:find("^    ") and line or nil, is_fenced
end

local function has_one(text, words)
  text = text:lower()
  for _, word in ipairs(words) do
    if text:find(word) then return true end
  end
end

-- The lines of a file that have one of the words: { number, line }.
local function lines_with(path, marks, words)
  local found, number, state = {}, 0, false
  local text = assert(file.read(sources .. path))
  if path == GLOSSARY then text = text:match("^(.*)\n## Words that this project does not use\n") end
  for line in text:gmatch("([^\n]*)\n") do
    local prose
    number = number + 1
    if path:find("%.md$") then
      prose, state = prose_of(line, state)
    else
      prose, state = comment_of(line, marks, state)
    end
    if prose and has_one(prose, words) then
      found[#found + 1] = ("%s:%d: %s"):format(path, number, line)
    end
  end
  return found
end

local function each_file(found)
  local names = assert(io.popen(("cd '%s' && find README.md docs generator bench templates tests cmake " ..
    ".ci workloads python -type f ! -path '*/golden/*' ! -path '*/corpus/*' ! -path '*/inputs/*' | " ..
    "LC_ALL=C sort"):format(sources)))
  for path in names:lines() do
    local name = path:match("[^/]*$")
    local ending = name:match("%.(%a+)$") or ""
    if COMMENTS[ending] and (ending ~= "txt" or name == "CMakeLists.txt") then
      found(path, COMMENTS[ending])
    end
  end
  assert(names:close(), "the files cannot be listed")
end

-- The number of lines of a file that ALLOWED has, and whether the entry has a reason and not too many lines.
local function allowed_lines(path, found)
  local entry = ALLOWED[path]
  if not entry then return 0, true end
  ALLOWED[path] = nil
  if type(entry[2]) == "string" and entry[2] ~= "" and entry[1] <= found then return entry[1], true end
  print(("%s: has %d such lines; ALLOWED has %d, reason: %s"):format(path, found, entry[1],
    tostring(entry[2])))
  return entry[1], false
end

local wrong, without_reason = false, 0
local words = forbidden_words()
each_file(function(path, marks)
  local lines = lines_with(path, marks, words)
  local allowed, is_right = allowed_lines(path, #lines)
  wrong = wrong or not is_right
  if #lines <= allowed then return end
  without_reason = without_reason + #lines - allowed
  print(table.concat(lines, "\n"))
end)
for path in pairs(ALLOWED) do
  print(path .. ": ALLOWED has it, but there is no such file")
  wrong = true
end
print(("%d lines have words that %s forbids, without a reason"):format(without_reason, GLOSSARY))
return (wrong or without_reason > 0) and 1 or 0
