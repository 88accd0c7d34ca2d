-- Each source is compiled once per set of definitions, and once more where a shared library needs
-- position-independent code. REASONS has the exceptions.
--
--   gentables lua tests/style/sources_are_compiled_once.lua SOURCES BUILD
local file = require "core.file"
local json = require "codec.json"

local sources, build = arg[1], arg[2]
local IDENTITY = "includes bench_identity.h, which differs between the backends"
local REASONS = { ["bench/protocol/pass_input.c"] = IDENTITY, ["bench/protocol/protocol.c"] = IDENTITY }

-- The differences of two compilations of a source: definitions, apart from those that name the library, and
-- position-independent code.
local function variant_of(command)
  local words = {}
  for word in command:gmatch "%S+" do
    local defines = word:find "^%-D" and not word:find "_EXPORTS$" and word ~= "-D_GNU_SOURCE"
    if defines or word == "-fPIC" then words[#words + 1] = word end
  end
  table.sort(words)
  return table.concat(words, " ")
end

local text, problem = file.read(build .. "/compile_commands.json")
if not text then require "skip" (problem) end
local compilations = json.decode(text)
local first, wrong = {}, 0
for _, entry in ipairs(compilations) do
  local path = entry.file:sub(#sources + 2)
  local key, object = path .. " " .. variant_of(entry.command), entry.command:match "%-o (%S+)"
  if first[key] and not REASONS[path] then
    wrong = wrong + 1
    print(("%s is compiled twice alike: %s and %s; share an object library, or add a reason to REASONS")
      :format(path, first[key], object))
  end
  first[key] = first[key] or object
end
assert(#compilations > 100, "too few compilations")
print(("%d compilations, %d of them repeated"):format(#compilations, wrong))
return wrong > 0 and 1 or 0
