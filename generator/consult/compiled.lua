-- A table's own lookup, compiled as its users compile it: a program or a module of a rendered source that
-- includes the table's header, in a temporary folder of its own.
local child_process = require "system.child_process"
local fail = require "base.fail"
local file = require "core.file"
local lists = require "lists.lists"
local scratch = require "system.scratch"
local sequences = require "base.sequences"
local template = require "codec.template"

local compiled = {}

local COMPILE_S = 120

-- The path from the root on, without links.
function compiled.absolute(path) return fail.unless(file.real_path(path)) end

-- Renders templates/NAME.tmpl with a model.
function compiled.render(name, model)
  return fail.unless(template.load(gentables.home .. "/templates/" .. name .. ".tmpl"))(model)
end

-- Runs a command to its end, with the options of child_process.run; the lines of its stdout, or nil and why
-- not.
function compiled.run(argv, options)
  local ran = child_process.run(argv, options)
  if ran.well then return ran.lines end
  if ran.problem then return nil, ran.reason end
  local detail = ran.errors:match("[^\n]*error[^\n]*") or ran.errors
  return nil, detail == "" and ran.reason or ran.reason .. ": " .. detail
end

-- The prefix of all names in an allreduce_table.h; nil: the text is no such header.
function compiled.prefix_of(text)
  return text:match("static inline enum ([%w_]+)_strategy [%w_]+_select%(")
end

-- Whether the text is a customAllReduceUtils.h with a lookup.
function compiled.is_trtllm_header(text) return text:find("selectStrategyLookUpTable", 1, true) ~= nil end

-- Files for compiled.make that replace the headers of TensorRT-LLM that a customAllReduceUtils.h includes, on
-- a GPU of this SM version.
function compiled.trtllm_stubs(text, sm)
  local strategies = sequences.filter(lists.strategies, function(strategy) return strategy.trtllm end)
  local others = { { path = "trtllm_stubs.h",
    text = compiled.render("regret/trtllm_stubs.h", { sm = sm, strategies = strategies }) } }
  local folders = {}
  for name in text:gmatch('#include "([%w_/]+%.h)"') do
    local folder = ""
    for part in name:gmatch("([%w_]+)/") do
      folder = folder .. (folder == "" and "" or "/") .. part
      if not folders[folder] then others[#others + 1] = { folder = folder } end
      folders[folder] = true
    end
    others[#others + 1] = { path = name, text = '#include "trtllm_stubs.h"\n' }
  end
  table.sort(others, function(a, b) -- folders first, and parents before their content
    if (a.folder ~= nil) ~= (b.folder ~= nil) then return a.folder ~= nil end
    return (a.folder or a.path) < (b.folder or b.path)
  end)
  return others
end

local function build(folder, path, what)
  local code, target = folder .. "/lookup." .. what.suffix, folder .. "/lookup"
  for _, other in ipairs(what.others or {}) do
    if other.folder then
      fail.unless(file.make_folder(folder .. "/" .. other.folder))
    else
      fail.unless(file.write(folder .. "/" .. other.path, other.text))
    end
  end
  fail.unless(file.write(code, what.source))
  local words = table.move(what.words, 1, #what.words, 2, { what.compiler })
  table.move({ "-I", folder, "-o", target, code }, 1, 5, #words + 1, words)
  -- A compiler that is killed leaves temporary files: they are removed with the folder.
  local lines, problem = compiled.run(words, { seconds = COMPILE_S, rights = "limited",
    environment = { "TMPDIR=" .. folder } })
  if not lines then fail.input("%s: does not compile with %s (%s)", path, what.compiler, problem) end
  return target
end

-- Compiles `what`, { compiler, words (its options), suffix, source (a text), others = { { folder } or { path,
-- text }... } that the source includes, or nil }. Returns { path = the result }; closing it removes the
-- folder. Raises if the source does not compile; the message names the file at `path`.
function compiled.make(path, what)
  local folder = scratch.folder("gentables-lookup")
  local built, target = pcall(build, folder.path, path, what)
  if not built then
    folder:remove()
    error(target, 0)
  end
  return setmetatable({ path = target }, { __close = function() folder:remove() end })
end

return compiled
