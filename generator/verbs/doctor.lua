-- gentables doctor: what is installed and works, what is missing, what each part is for, and how to install
-- it.
local json = require "codec.json"
local next_commands = require "surroundings.next_commands"
local parts = require "surroundings.parts"
local sequences = require "base.sequences"

local function print_parts(found)
  for _, part in ipairs(found) do
    io.stdout:write(("%-8s %-21s %s\n"):format(part.state, part.name, part.purpose))
    if part.problem then io.stdout:write((" "):rep(9), part.problem, "\n") end
  end
end

-- Prints what to do; `missing` and `required` (those that do not work) are rows of parts.list.
local function print_advice(missing, required)
  local command = parts.install_command(missing)
  if command then io.stdout:write("\nto install the missing parts:\n  ", command, "\n") end
  if sequences.any(missing, function(part) return part.rebuild end) then
    io.stdout:write(command and "then build gentables again" or "\nto have the missing parts, build it again",
      next_commands.build_again())
  end
  if #required > 0 then
    io.stdout:write("\nthis machine cannot be measured without ",
      table.concat(sequences.map(required, function(part)
        return (part.is_here and "a working " or "") .. part.name
      end), " and "), "; tables can be made from rows\n")
  else
    io.stdout:write("\nthis machine can be measured\n")
  end
end

return {
  summary = "Prints which parts work, which are missing or broken, the verbs that need each, and how to\n"
    .. "install it. Parts are tried: two ranks start, a picture is drawn, a program is compiled. Exit\n"
    .. "code 0 if this machine can be measured and its tables made, else 2.",
  options = { { name = "json", help = "print JSON" } },
  example = "gentables doctor",
  run = function(args)
    local found = sequences.map(parts.list, function(part)
      local row = sequences.pick(part, { "name", "purpose", "debian", "fedora", "rebuild", "required" })
      row.state, row.problem = parts.state(part)
      row.is_here = row.state ~= "missing"
      row.is_installed = not row.is_here and parts.is_installed(part) or nil
      return row
    end)
    local missing = sequences.filter(found, function(part) return not part.is_here end)
    local required = sequences.filter(found, function(part)
      return part.required and part.state ~= "found"
    end)
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
