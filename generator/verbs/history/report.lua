-- gentables history report: where the times of a history changed.
local change_points = require "history.change_points"
local fail = require "base.fail"
local file = require "core.file"
local history_store = require "history.history_store"
local history_text = require "history.history_text"

local function read(args)
  local store, histories = history_store.open(args.database), {}
  for _, name in ipairs(store:histories()) do
    if not args.arch or name.arch == args.arch then
      local history = store:read(name)
      history.result = change_points.find(history.model, args)
      histories[#histories + 1] = history
    end
  end
  store:close()
  if #histories == 0 then
    fail.input("%s: has no runs%s", args.database, args.arch and " of " .. args.arch or "")
  end
  return histories
end

-- Writes a file; its line goes to `stream`.
local function write(path, text, stream)
  fail.unless_done(file.write(path, text))
  stream:write("written   ", path, "\n")
end

-- Whether a time became longer in the last `runs` runs, and has stayed so.
local function is_slower(histories, runs)
  for _, history in ipairs(histories) do
    for _, finding in ipairs(history.result.findings) do
      local is_new = finding.at > #history.runs - runs
      if is_new and finding.shift > 0 and history_text.is_last(history, finding) then return true end
    end
  end
  return false
end

return {
  summary = "Reports where times changed: all strategies (the machine), one, a part of it, or a cell.",
  options = {
    { name = "database", value = "FILE", help = "the history", default = "build/history.db" },
    { name = "arch", value = "ARCH", help = "only rows of this arch" },
    { name = "out", value = "FILE", help = "write a page, FILE.html" },
    { name = "markdown", value = "FILE", help = "write Markdown, for CI" },
    { name = "json", help = "print JSON" },
    { name = "threshold", value = "SHARE", type = "number", above = 0, most = 1, default = 0.02,
      help = "smaller changes do not count" },
    { name = "alpha", value = "SHARE", type = "number", above = 0, most = 0.5, default = 0.002,
      help = "probability of any false alarm" },
    { name = "fail-within", value = "RUNS", type = "whole",
      help = "exit code 1 if a time became longer in the last RUNS runs" },
  },
  example = "gentables history add tables/host --database history.db\n"
    .. "  gentables history report --database history.db --out history.html --fail-within 5",
  run = function(args)
    local histories = read(args)
    io.stdout:write(args.json and history_text.json(histories) or history_text.lines(histories))
    local stream = args.json and io.stderr or io.stdout -- stdout has only JSON
    if args.out then
      write(args.out, require("history.history_page").page(histories, args):render(), stream)
    end
    if args.markdown then write(args.markdown, history_text.markdown(histories), stream) end
    return args.fail_within and is_slower(histories, args.fail_within) and 1 or 0
  end,
}
