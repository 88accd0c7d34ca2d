-- gentables manual: the man pages of the program and of all verbs, in a folder.
local fail = require "base.fail"
local file = require "core.file"
local manual = require "reference.manual"

return {
  summary =
    "Writes man pages of gentables, its verbs and commands, from the declarations that --help prints.",
  options = { { name = "out", value = "DIR", required = true, help = "folder of gentables*.1" } },
  example = "gentables manual --out man1",
  run = function(args, verbs)
    fail.unless_done(file.make_folder(args.out))
    local pages = manual.pages(verbs)
    for _, page in ipairs(pages) do fail.unless_done(file.write(args.out .. "/" .. page.file, page.text)) end
    io.stdout:write(("%d pages in %s\n"):format(#pages, args.out))
  end,
}
