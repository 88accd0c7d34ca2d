-- gentables doctor: what is installed, what is missing, what each part is for, and how to install it.
local json = require "codec.json"
local parts = require "surroundings.parts"
local sequences = require "base.sequences"

local function print_parts(found)
  for _, part in ipairs(found) do
    local state = part.is_here and "found" or "missing"
    io.stdout:write(("%-8s %-21s %s\n"):format(state, part.name, part.purpose))
  end
end

-- Prints what to do; `missing` and `required` are rows of parts.list.
local function print_advice(missing, required)
  local command = parts.install_command(missing)
  if command then io.stdout:write("\nto install the missing parts:\n  ", command, "\n") end
  if sequences.any(missing, function(part) return part.rebuild end) then
    io.stdout:write("then build gentables again:\n  cmake --preset default && cmake --build build\n")
  end
  if #required > 0 then
    io.stdout:write("\nthis machine cannot be measured without ",
      table.concat(sequences.field(required, "name"), " and "), "; tables can be made from rows\n")
  else
    io.stdout:write("\nthis machine can be measured\n")
  end
end

return {
  summary = "Prints which parts are installed and which are missing, the verbs that need each, and how to\n"
    .. "install it. Exit code 0 if this machine can be measured and its tables made, else 2.",
  options = { { name = "json", help = "print JSON" } },
  example = "gentables doctor",
  run = function(args)
    local found = sequences.map(parts.list, function(part)
      local row = sequences.pick(part, { "name", "purpose", "debian", "fedora", "rebuild", "required" })
      row.is_here = parts.has(part)
      return row
    end)
    local missing = sequences.filter(found, function(part) return not part.is_here end)
    local required = sequences.filter(missing, function(part) return part.required end)
    if args.json then
      io.stdout:write(json.encode { parts = json.array(found), can_measure = #required == 0,
        command = parts.install_command(missing) }, "\n")
    else
      print_parts(found)
      print_advice(missing, required)
    end
    return #required > 0 and 2 or 0
  end,
}
