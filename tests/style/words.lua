-- The words that docs/glossary.md forbids ("Words that this project does not use"): comments and pages use
-- others. Prints each line that has one, and the counts by folder; ends with 1 if there are more than the
-- limits, or fewer in a file than ALLOWED lists.
--
--   gentables lua tests/style/words.lua SOURCES
local file = require "core.file"

local sources = arg[1] .. "/"
local GLOSSARY = "docs/glossary.md"
-- Lines that have no reason in ALLOWED. These limits only go down.
local MOST_COMMENTS, MOST_IN_PAGES = 80, 5

-- Lines that have such a word for a reason: { file = { lines, reason } }.
local ALLOWED = {}

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

local wrong, comments, in_pages, folders = false, 0, 0, {}
local words = forbidden_words()
each_file(function(path, marks)
  local lines = lines_with(path, marks, words)
  local allowed = ALLOWED[path] and ALLOWED[path][1] or 0
  if #lines == 0 and allowed == 0 then return end
  if allowed > #lines then
    print(("%s: has %d such lines; ALLOWED says %d"):format(path, #lines, allowed))
    wrong = true
  end
  local count = math.max(#lines - allowed, 0)
  if count == 0 then return end
  if path:find("%.md$") then in_pages = in_pages + count else comments = comments + count end
  local folder = path:match("^[^/]*/[^/]*/") or path:match("^[^/]*")
  folders[folder] = (folders[folder] or 0) + count
  print(table.concat(lines, "\n"))
end)
for folder, count in pairs(folders) do print(("%4d %s"):format(count, folder)) end
print(("%d comments and %d lines of pages have words that %s forbids; at most %d and %d"):format(comments,
  in_pages, GLOSSARY, MOST_COMMENTS, MOST_IN_PAGES))
return (wrong or comments > MOST_COMMENTS or in_pages > MOST_IN_PAGES) and 1 or 0
