-- gentables template: renders one template, for the build of the bench.
local fail = require "base.fail"
local file = require "core.file"
local lists = require "lists.lists"
local template = require "codec.template"

local verb = {}

verb.summary = "Renders one template, which sees `lists` and each NAME=VALUE as a text."
verb.positional = { name = "TEMPLATE [NAME=VALUE...]", min = 1, max = math.huge }
verb.options = { { name = "out", value = "FILE", help = "the rendered file", required = true } }
verb.example = "gentables template templates/bench/lists.h.tmpl --out lists.h"

function verb.run(args)
  local model = { lists = lists }
  for i = 2, #args do
    local name, value = args[i]:match("^([%w_]+)=(.*)$")
    if not name then fail.input("%s: not of the form NAME=VALUE", args[i]) end
    model[name] = value
  end
  local text = template.load(args[1])(model)
  if file.holds(args.out, text) then return end -- keeps its date, so that nothing is compiled again
  fail.unless_done(file.write(args.out, text))
end

return verb
