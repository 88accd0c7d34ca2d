-- gentables generate: rows -> table -> artifacts. Measures nothing; touches only files that change.
local choice = require "table.settings"
local fail = require "base.fail"
local file = require "core.file"
local formats = require "formats.list"
local model = require "formats.model"
local options = require "base.options"
local render = require "formats.render"
local trtllm_generator = require "sweep.trtllm_generator"

local function padded(word) return ("%-10s"):format(word) end

return {
  summary = "Makes an arch's tables from the rows in a folder: in each cell what is expected to lose least.",
  options = options.with(choice.options, {
    { name = "data-dir", value = "DIR", help = "folder of benchmark.tp{N}.{arch}.csv" },
    { name = "arch", value = "ARCH", help = "what it is for: host, host-NAME, sm90 ..., or all: every smXX" },
    { name = "sm", value = "N,N...", help = "of all smXX only those that programs built for these use" },
    { name = "out", value = "DIR", help = "where to write (default: where the rows are)" },
    { name = "formats", value = "LIST",
      help = "of " .. table.concat(formats.names(), ",") .. " (default: all)" },
    { name = "sm-version", value = "N",
      help = "as TensorRT-LLM's generator does (--sm_version, --data_dir ... read alike): docs/trtllm.md" },
    { name = "save-csv-dir", value = "DIR", help = "with --sm-version: where that sweep writes" },
    { name = "enable-auto", help = "with --sm-version: report AUTO, the incumbent's lookup" },
    { name = "incumbent", value = "HEADER", help = "with --enable-auto: the incumbent, for a sweep" },
  }),
  example = "gentables generate --data-dir tables/host --arch host --out tables/host",
  run = function(args)
    trtllm_generator.prepare(args)
    if not args.data_dir then fail.input("generate needs --data-dir DIR; see gentables generate --help") end
    if not args.arch then fail.input("generate needs --arch ARCH; see gentables generate --help") end
    local out = (args.out or args.data_dir):gsub("(.)/+$", "%1")
    local source = model.load(args.data_dir, args.arch, args, out)
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
    trtllm_generator.report(args, source)
  end,
}
