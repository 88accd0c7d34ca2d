-- gentables completion: the completions of a shell, on standard output.
local completion = require "reference.completion"
local fail = require "base.fail"
local text = require "base.text"

local SHELLS = { "bash", "zsh", "fish" }

return {
  summary = "Prints completions of the command line for a shell.",
  positional = { name = "bash|zsh|fish", min = 1, max = 1, values = SHELLS, help = "the shell" },
  example = "gentables completion bash > gentables.bash && . ./gentables.bash",
  run = function(args, verbs)
    local render
    for _, shell in ipairs(SHELLS) do
      if args[1] == shell then render = completion[shell] end
    end
    if not render then
      fail.input("completion: no shell %q%s; valid: %s", args[1], text.did_you_mean(args[1], SHELLS),
        table.concat(SHELLS, ", "))
    end
    io.stdout:write(render(verbs.list))
  end,
}
