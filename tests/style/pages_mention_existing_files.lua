-- The files, headings and options that README.md and the pages of docs/ mention exist. An option that no verb
-- has would lead readers into an error.
--
--   gentables lua tests/style/pages_mention_existing_files.lua SOURCES        prints each error
--   gentables lua tests/style/pages_mention_existing_files.lua SOURCES write  writes the tables of lists
local file = require "core.file"
local formats = require "formats.list"
local is_rendered = dofile(arg[0]:match("^(.*/)") .. "rendered.lua")
local lists = require "lists.lists"
local readers = require "reading.list"
local verbs = require "verbs"

local source, writes = arg[1], arg[2] == "write"

-- Options of other programs that the pages show: CMake and CTest, mpirun, srun and sbatch, podman,
-- all_reduce.py. Commands of only these programs are not checked.
local OF_OTHERS = { ["build"] = true, ["target"] = true, ["preset"] = true, ["workflow"] = true,
  ["install"] = true, ["prefix"] = true, ["test-dir"] = true, ["allow-run-as-root"] = true, ["tune"] = true,
  ["mpi"] = true, ["gpus-per-task"] = true, ["help"] = true, ["benchmark"] = true, ["host"] = true,
  ["map-by"] = true, ["bind-to"] = true, ["nodes"] = true, ["ntasks"] = true, ["ntasks-per-node"] = true,
  ["time"] = true, ["ipc"] = true, ["mca"] = true, ["shm-size"] = true }
local OTHERS = { chromium = true, gh = true, podman = true }

local wrong = 0
local checked = { links = 0, options = 0, commands = 0, guarantees = 0 }

local function report(path, line, message, ...)
  wrong = wrong + 1
  print(("%s:%d: "):format(path, line) .. message:format(...))
end

-- The pages below the sources, without those of builds and of test inputs.
local function pages()
  local found = {}
  local names = assert(io.popen(("cd '%s' && find . -name '*.md' ! -path './build*' ! -path './.git/*' " ..
    "! -path './tests/fuzz/*' ! -path './tests/readers/*' ! -path './tests/unit/formats/*' | sort")
    :format(source)))
  for path in names:lines() do found[#found + 1] = path:sub(3) end
  assert(names:close(), "the pages cannot be listed")
  return found
end

-- The lines of a page; each with whether it is code: in a fence, or indented by four spaces.
local function lines_of(path)
  local lines, fenced = {}, false
  for text in (assert(file.read(source .. "/" .. path)) .. "\n"):gmatch("(.-)\n") do
    local fence = text:find("^```") ~= nil
    lines[#lines + 1] = { text = text, is_code = fence or fenced or text:find("^    ") ~= nil }
    if fence then fenced = not fenced end
  end
  return lines
end

-- ---- links --------------------------------------------------------------------------------------

-- The name of a heading in a link: lower case, without punctuation, a dash for each space.
local function anchor_of(heading)
  return (heading:lower():gsub("[^%w%s_-]", ""):gsub("%s", "-"))
end

local function anchors_of(path)
  local anchors = {}
  for _, line in ipairs(lines_of(path)) do
    local heading = not line.is_code and line.text:match("^#+%s+(.-)%s*$")
    if heading then anchors[anchor_of(heading)] = true end
  end
  return anchors
end

-- Whether a file or a folder exists; no link ends with a slash.
local function exists(path) return (os.rename(path, path)) ~= nil end

local function check_link(path, number, target)
  if target:find("^%a+:") then return end -- an address elsewhere
  checked.links = checked.links + 1
  local name, anchor = target:match("^([^#]*)#?(.*)$")
  local folder = path:match("^(.*/)") or ""
  local there = name == "" and path or folder .. name
  while there:find("[^/]+/%.%./") do there = there:gsub("[^/]+/%.%./", "", 1) end
  if not exists(source .. "/" .. there) then
    report(path, number, "links to %s, which is not there", target)
  elseif anchor ~= "" and there:find("%.md$") and not anchors_of(there)[anchor] then
    report(path, number, "links to %s, and %s has no such heading", target, there)
  end
end

-- Calls `check` with the line and the rest of the captures for each match of `pattern`, which begins with ().
local function each(text, pattern, check)
  local number, at = 1, 1
  for start, found in text:gmatch(pattern) do
    number = number + select(2, text:sub(at, start - 1):gsub("\n", ""))
    at = start
    check(number, found)
  end
end

-- A page's prose as one text, because links and code may continue on the next line; code lines are empty.
local function prose_of(path)
  local kept = {}
  for i, line in ipairs(lines_of(path)) do kept[i] = line.is_code and "" or line.text end
  return table.concat(kept, "\n")
end

local function check_links(path)
  local text = prose_of(path):gsub("`[^`]*`", function(code) return (code:gsub("[^\n]", "")) end)
  each(text, "()%]%(%s*([^)%s]+)%)", function(number, target) check_link(path, number, target) end)
end

-- ---- options ------------------------------------------------------------------------------------

-- The declarations of options, by the verb or the verb's command.
local function declared_options()
  local found = {}
  for _, verb in ipairs(verbs.list) do
    local module = require("verbs." .. verb.name)
    found[verb.name] = module.options or {}
    for _, row in ipairs(module.commands or {}) do
      found[verb.name .. " " .. row.name] = require("verbs." .. verb.name .. "." .. row.name).options or {}
    end
  end
  return found
end

local declared = declared_options()

local function has(options, field, name)
  for _, option in ipairs(options) do
    if option[field] == name then return true end
  end
  return name == "help"
end

-- Whether these options have a long name. The page on the commands of other tools has their names of it, too.
local function has_long(options, name, path)
  if has(options, "name", name) then return true end
  for _, option in ipairs(path == "docs/commands.md" and options or {}) do
    for _, alias in ipairs(option.aliases or {}) do
      if alias == name then return true end
    end
  end
  return false
end

local function of_any(name, path)
  for _, options in pairs(declared) do
    if has_long(options, name, path) then return true end
  end
  return false
end

-- The options in the help of the programs below bench/ and of the scripts.
local function printed_by_programs()
  local texts = {}
  for _, name in ipairs { "bench/main.c", "bench/replay/main.c", "bench/workload/main.c" } do
    texts[#texts + 1] = assert(file.read(source .. "/" .. name))
  end
  return table.concat(texts)
end

local programs = printed_by_programs()

-- A command of gentables in a line of code or between backticks: its options are the verb's.
local function check_command(path, number, command)
  local verb, rest = command:match("^gentables%s+(%l+)%f[%W](.*)$")
  if not verb then return end
  if not declared[verb] then
    if verb ~= "help" then report(path, number, "there is no verb %s", verb) end
    return
  end
  checked.commands = checked.commands + 1
  rest = rest:gsub('"[^"]*"', '""'):gsub("%s%-%-%s.*$", "") -- launchers and commands have their own options
  local second = rest:match("^%s+(%l+)%f[%W]")
  local name = second and declared[verb .. " " .. second] and verb .. " " .. second or verb
  if #declared[name] == 0 then return end -- a verb with commands, or without options
  for option in rest:gmatch("%s%-%-([%w_-]+)") do
    if not has_long(declared[name], (option:gsub("_", "-")), path) then
      report(path, number, "gentables %s has no option --%s", name, option)
    end
  end
  for option in rest:gmatch("%s%-(%w)%f[%s%z]") do
    if not has(declared[name], "short", option) then
      report(path, number, "gentables %s has no option -%s", name, option)
    end
  end
end

-- Any other option must be one of some verb, or of a program that is built here.
local function check_option(path, number, option)
  local name = option:gsub("_", "-")
  checked.options = checked.options + 1
  if OF_OTHERS[name] or of_any(name, path) then return end
  if programs:find("--" .. name, 1, true) or programs:find('"' .. name .. '"', 1, true) then return end
  report(path, number, "nothing here takes --%s", option)
end

local function check_code(path, number, code)
  if OTHERS[code:match("%S+")] then return end
  code = code:gsub("sh cmake/dev%.sh (%l+)%f[%s%z]", function(name) -- its `check` is another command
    return declared[name] and name ~= "check" and "gentables " .. name or nil
  end)
  for start in code:gmatch("()%f[%w_]gentables%s+%l") do
    if not code:sub(1, start - 1):find("[%w_-]$") then
      check_command(path, number, (code:sub(start):gsub("%s[#|;&].*", "")))
    end
  end
  for option in (" " .. code):gmatch("%s%-%-(%a[%w_-]*)") do check_option(path, number, option) end
end

local function check_options(path)
  for number, line in ipairs(lines_of(path)) do
    if line.is_code and not line.text:find("^    gentables: ") then check_code(path, number, line.text) end
  end
  each(prose_of(path), "()`([^`]+)`", function(number, code) check_code(path, number, code) end)
end

-- ---- guarantees ---------------------------------------------------------------------------------

local manifest = "\n" .. assert(file.read(source .. "/.ci/manifest"))

local function is_test_of_ci(name) return manifest:find("\n" .. name .. "%f[%s]") ~= nil end

-- The last cell of each guarantee names tests that CI expects.
local function check_guarantees(path)
  for number, line in ipairs(lines_of(path)) do
    local tests = line.text:match("^|.*|([^|]*)|$")
    for name in (tests or ""):gmatch("`([^`]+)`") do
      checked.guarantees = checked.guarantees + 1
      if not is_test_of_ci(name) then
        report(path, number, "CI has no test %s", name)
      end
    end
  end
end

-- ---- tables that lists give -----------------------------------------------------------------------

local function table_of_formats()
  local lines = { "\n| format | file | read by | shown by |\n|---|---|---|---|\n" }
  for _, format in ipairs(formats.list) do
    local shown, tests = format.shown, formats.tests_of(format)
    lines[#lines + 1] = ("| `%s` | `%s`%s | %s | %s |\n"):format(format.name,
      formats.shown_file(format), format.scope == "all" and " (`--arch all`)" or "", format.reader,
      shown and ("%s (`%s`)"):format(shown.what, table.concat(tests, "`, `")) or "")
    for _, name in ipairs(tests) do
      if not is_test_of_ci(name) then report("generator/formats/list.lua", 1, "CI has no test %s", name) end
    end
  end
  return table.concat(lines) .. "\n"
end

local function table_of_readers()
  local lines = { "\n| reader | reads | result |\n|---|---|---|\n" }
  for _, reader in ipairs(readers.list) do
    lines[#lines + 1] = ("| `%s` | %s | %s |\n"):format(reader.name,
      (reader.help:gsub("%-%-[%w-]+", "`%0`")), reader.gives == "rows" and "rows" or "a table")
  end
  return table.concat(lines) .. "\n"
end

-- As clang-format aligns it.
local function enum_of_fusions()
  local lines, width = {}, 0
  for _, fusion in ipairs(lists.epilogues) do width = math.max(width, #fusion.name) end
  for _, fusion in ipairs(lists.fusions) do
    local padding = fusion.result and (" "):rep(width - #fusion.name + 1) .. "// " .. fusion.result or ""
    lines[#lines + 1] = ("    GT_FUSION_%s,%s\n"):format(fusion.name, padding)
  end
  return table.concat(lines)
end

local function check_tables()
  local rendered = { { "docs/formats.md", "formats", table_of_formats() },
    { "docs/import.md", "readers", table_of_readers() },
    { "bench/plugins/plugin.h", "fusions", enum_of_fusions() } }
  for _, part in ipairs(rendered) do
    local page, name, text = table.unpack(part)
    if not is_rendered(source .. "/" .. page, name, text, writes) then
      report(page, 1, "the part %s is not what the list gives; gentables lua %s . write", name,
        "tests/style/pages_mention_existing_files.lua")
    end
  end
end

-- Without any page or content nothing would be checked.
local function check_all()
  local found = {}
  for _, path in ipairs(pages()) do
    found[path] = true
    check_links(path)
    if path == "README.md" or path:find("^docs/") then check_options(path) end
  end
  check_guarantees("docs/security.md")
  assert(found["README.md"] and found["docs/development.md"], "pages are missing")
  for word, count in pairs(checked) do assert(count > 0, "the pages have no " .. word) end
end

check_tables()
check_all()
if wrong > 0 then print(("%d of the pages' links and options are wrong"):format(wrong)) end
return wrong > 0 and 1 or 0
