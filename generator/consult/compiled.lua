-- A table's own lookup, compiled as its users compile it: a program or a module of a rendered source that
-- includes the table's header, in a folder that goes with it.
local fail = require "base.fail"
local file = require "core.file"
local lists = require "lists.lists"
local process = require "core.process"
local template = require "codec.template"

local compiled = {}

local COMPILE_S = 120

-- The path from the root on.
function compiled.absolute(path)
  if path:sub(1, 1) == "/" then return path end
  local handle <close> = assert(io.popen("pwd"))
  return handle:read("l") .. "/" .. path
end

-- What templates/NAME.tmpl makes of a model.
function compiled.render(name, model)
  return fail.unless(template.load(gentables.home .. "/templates/" .. name .. ".tmpl"))(model)
end

-- Runs a command to its end; the lines of its stdout, or nil and why not.
function compiled.run(argv, input, seconds)
  local child, problem = process.start(argv)
  if not child then return nil, problem end
  if input ~= "" then child:write(input, seconds) end
  local lines, deadline = {}, process.now() + seconds
  local line
  repeat
    line, problem = child:read_line(deadline - process.now())
    lines[#lines + 1] = line
  until not line
  local how, well = child:close(problem == "end" and 1 or 0)
  if problem ~= "end" then return nil, ("did not end within %d s"):format(seconds) end
  local errors = child:errors()
  if not well then return nil, ("%s: %s"):format(how, errors:match("[^\n]*error[^\n]*") or errors) end
  return lines
end

-- The name that all of an allreduce_table.h's begin with; nil: the text is none.
function compiled.prefix_of(text)
  return text:match("static inline enum ([%w_]+)_strategy [%w_]+_select%(")
end

-- Whether the text is a customAllReduceUtils.h with a lookup.
function compiled.is_trtllm_header(text) return text:find("selectStrategyLookUpTable", 1, true) ~= nil end

-- What stands in for the headers of TensorRT-LLM that the text of a customAllReduceUtils.h includes, on a GPU
-- of this SM version; for compiled.make.
function compiled.trtllm_world(text, sm)
  local strategies = {}
  for _, strategy in ipairs(lists.strategies) do
    if strategy.trtllm then strategies[#strategies + 1] = strategy end
  end
  local others = { { path = "trtllm_world.h",
    text = compiled.render("regret/trtllm_world.h", { sm = sm, strategies = strategies }) } }
  local folders = {}
  for name in text:gmatch('#include "([%w_/]+%.h)"') do
    local folder = ""
    for part in name:gmatch("([%w_]+)/") do
      folder = folder .. (folder == "" and "" or "/") .. part
      if not folders[folder] then others[#others + 1] = { folder = folder } end
      folders[folder] = true
    end
    others[#others + 1] = { path = name, text = '#include "trtllm_world.h"\n' }
  end
  table.sort(others, function(a, b) -- folders first, and parents before what is in them
    if (a.folder ~= nil) ~= (b.folder ~= nil) then return a.folder ~= nil end
    return (a.folder or a.path) < (b.folder or b.path)
  end)
  return others
end

local function remove_all(made)
  for i = #made, 1, -1 do os.remove(made[i]) end
end

-- Compiles { compiler, words, suffix, source, others = { { folder } or { path, text }... } of files that it
-- includes, or nil }, which is about the file at `path`. Returns what is made as { path =, closed: it is
-- gone }. Raises where it does not compile.
function compiled.make(path, what)
  local folder = os.tmpname()
  os.remove(folder)
  fail.unless(file.make_folder(folder))
  local code, target = folder .. "/lookup." .. what.suffix, folder .. "/lookup"
  local made = { folder }
  for _, other in ipairs(what.others or {}) do
    made[#made + 1] = folder .. "/" .. (other.folder or other.path)
    if other.folder then
      fail.unless(file.make_folder(made[#made]))
    else
      fail.unless(file.write(made[#made], other.text))
    end
  end
  fail.unless(file.write(code, what.source))
  table.move({ code, target }, 1, 2, #made + 1, made)
  local words = table.move(what.words, 1, #what.words, 2, { what.compiler })
  table.move({ "-I", folder, "-o", target, code }, 1, 5, #words + 1, words)
  local lines, problem = compiled.run(words, "", COMPILE_S)
  if not lines then
    remove_all(made)
    fail.input("%s: does not compile with %s (%s)", path, what.compiler, problem)
  end
  return setmetatable({ path = target }, { __close = function() remove_all(made) end })
end

return compiled
