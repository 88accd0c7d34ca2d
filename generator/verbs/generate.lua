-- gentables generate: rows -> table -> artifacts. Measures nothing; writes only files that change.
local settings = require "choose.settings"
local fail = require "base.fail"
local file = require "core.file"
local folder_lock = require "rows.folder_lock"
local formats = require "formats.list"
local gaps = require "formats.gaps"
local model = require "formats.model"
local options = require "base.options"
local predicted_in_words = require "formats.predicted_in_words"
local render = require "formats.render"
local stamp = require "formats.stamp"
local trtllm_generator = require "sweep.trtllm_generator"

local function print_state(word, path) io.stdout:write(("%-10s"):format(word), path, "\n") end

return {
  summary = "Writes an arch's tables from the rows in a folder; each cell has the strategy with the least\n"
    .. "expected loss. Measures nothing.",
  options = options.with(settings.options, {
    { name = "data-dir", value = "DIR", help = "folder of benchmark.tp{N}.{arch}.csv" },
    { name = "arch", value = "ARCH",
      help = "host, host-NAME, sm90 ...; all: every smXX of the folder, for the formats with several" },
    { name = "sm", value = "N,N...",
      help = "with --arch all: only the tables that programs built for these SM versions use" },
    { name = "out", value = "DIR", help = "folder of the tables (default: that of the rows)" },
    { name = "formats", value = "LIST",
      help = "of " .. table.concat(formats.names(), ",") .. " (default: all of the arch)" },
    { name = "stamp", value = "FILE",
      help = "render nothing if no input and no table has changed since the run that wrote this file" },
    { name = "sm-version", value = "N",
      help = "run as TensorRT-LLM's generator does; see docs/trtllm.md" },
    { name = "save-csv-dir", value = "DIR",
      help = "with --sm-version, without --data-dir: folder of the rows of a sweep" },
    { name = "enable-auto", help = "with --sm-version: measure AUTO, the incumbent's lookup, and report it" },
    { name = "incumbent", value = "HEADER", help = "with --enable-auto: the header of that lookup" },
  }),
  example = "gentables generate --data-dir tables/host --arch host --out tables/host",
  run = function(args)
    trtllm_generator.prepare(args)
    if not args.data_dir then fail.input("generate needs --data-dir DIR; see gentables generate --help") end
    if not args.arch then fail.input("generate needs --arch ARCH; see gentables generate --help") end
    local out = (args.out or args.data_dir):gsub("(.)/+$", "%1")
    local lock <close> = folder_lock.take(out) -- the table that stands there is read and written
    local before = args.stamp and stamp.state(args, out)
    local current = before and stamp.tables(args.stamp, before)
    if current then
      for _, path in ipairs(current) do print_state("unchanged", path) end
      return
    end
    local source = model.load(args.data_dir, args.arch, args, out)
    -- Everything is rendered before anything is written: an error in the input changes no file.
    local texts, paths = {}, {}
    for i, made in ipairs(render.files(source, args.formats)) do
      paths[i] = out .. "/" .. made.file
      texts[i] = { path = paths[i], text = made.text }
    end
    fail.unless_done(file.make_folder(out))
    local _ <close> = not lock and folder_lock.take(out) or nil
    local written = render.update(texts)
    for _, path in ipairs(paths) do print_state(written[path] and "written" or "unchanged", path) end
    gaps.print { source }
    predicted_in_words.print { source }
    trtllm_generator.report(args, source)
    if before then stamp.keep(args.stamp, before, args, out, source, paths) end
  end,
}
