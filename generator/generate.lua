-- gentables generate: rows -> table -> artifacts. Measures nothing; touches only files that change.
local fail = require "fail"
local file = require "core.file"
local formats = require "formats"
local model = require "model"
local render = require "render"

local function padded(word) return ("%-10s"):format(word) end

return {
  summary = "Makes the tables of an arch from the rows in a folder: winners by median.",
  options = {
    { name = "data-dir", value = "DIR", help = "folder of benchmark.tp{N}.{arch}.csv", required = true },
    { name = "arch", value = "ARCH", required = true,
      help = "what it is for: host, host-NAME, sm90 ..., or all: every smXX" },
    { name = "sm", value = "N,N...", help = "of all smXX only those that programs built for these use" },
    { name = "out", value = "DIR", help = "where to write (default: where the rows are)" },
    { name = "formats", value = "LIST",
      help = "of " .. table.concat(formats.names(), ",") .. " (default: all)" },
  },
  example = "gentables generate --data-dir tables/host --arch host --out tables/host",
  run = function(args)
    local source = model.load(args.data_dir, args.arch, args.sm)
    local out = (args.out or source.data_dir):gsub("(.)/+$", "%1")
    -- Everything is rendered before anything is written, so that a fault in the input leaves all as it was.
    local texts = {}
    for i, made in ipairs(render.files(source, args.formats)) do
      texts[i] = { path = out .. "/" .. made.file, text = made.text }
    end
    local made, message = file.make_folder(out)
    if not made then fail.work("%s", message) end
    local written = render.update(texts)
    for _, artifact in ipairs(texts) do
      io.stdout:write(padded(written[artifact.path] and "written" or "unchanged"), artifact.path, "\n")
    end
  end,
}
