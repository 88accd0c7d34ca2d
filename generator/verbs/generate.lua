-- gentables generate: rows -> table -> artifacts. Measures nothing; writes only files that change.
local settings = require "choose.settings"
local data_folder = require "surroundings.data_folder"
local fail = require "base.fail"
local file = require "core.file"
local folder_lock = require "rows.folder_lock"
local formats = require "formats.list"
local gaps = require "formats.gaps"
local model = require "formats.model"
local mpich = require "formats.mpich"
local options = require "base.options"
local predicted_in_words = require "formats.predicted_in_words"
local render = require "formats.render"
local sequences = require "base.sequences"
local stamp = require "formats.stamp"
local trtllm_generator = require "sweep.trtllm_generator"

local function print_state(word, path) io.stdout:write(("%-10s"):format(word), path, "\n") end

-- Renders the copies of --install-prefix: { files (of render.installed), folder }. Makes the folder, for its
-- absolute path.
local function installed(source, args, out)
  fail.unless_done(file.make_folder(args.install_prefix))
  local folder = fail.unless(file.real_path(args.install_prefix))
  if folder == file.real_path(out) then
    fail.input("--install-prefix %s: is the folder of the tables, which hold no paths; name another",
      args.install_prefix)
  end
  return { files = render.installed(source, args.formats, folder), folder = folder }
end

-- Rendered files as texts for write().
local function texts_in(folder, files)
  return sequences.map(files, function(made)
    return { path = folder .. "/" .. made.file, text = made.text }
  end)
end

-- Writes texts ({ path, text }) to a folder that exists, and prints their paths.
local function write(texts)
  local written = render.update(texts)
  for _, made in ipairs(texts) do
    print_state(written[made.path] and "written" or "unchanged", made.path)
  end
end

local function remove(path, left)
  fail.unless(os.remove(path))
  print_state("removed", ("%s (%s)"):format(path, left.why))
end

-- Removes the files of formats that the rows no longer give, such as those of another machine's search;
-- `made`: of render.files.
local function remove_stale(source, names, made, out)
  for _, left in ipairs(render.stale(source, names, made, out)) do
    local path = out .. "/" .. left.file
    if left.is_generated then
      remove(path, left)
    else
      fail.note("%s: has no rows here; remove it (%s)", path, left.why)
    end
  end
end

-- Removes the copies of --install-prefix of formats that the rows no longer give. The folder may have files
-- of others, and copies for other TP sizes, from other rows.
local function remove_stale_copies(source, names, copies)
  for _, left in ipairs(render.stale(source, names, copies.files, copies.folder, render.installs)) do
    if left.is_generated and left.is_whole then remove(copies.folder .. "/" .. left.file, left) end
  end
end

return {
  summary = "Writes an arch's tables from the rows in a folder; each cell has the strategy with the least\n"
    .. "expected loss. Without --arch, for an SM version, it does as TensorRT-LLM's generator: the table is\n"
    .. "DIR/gen_heuristic_code/generated_lookup_table.cpp, and GPUs are measured if there are no rows.",
  positional = data_folder.positional,
  options = options.with(settings.options, {
    { name = "data-dir", value = "DIR",
      help = "folder of benchmark.tp{N}.{arch}.csv (default: data, else the current folder)" },
    { name = "arch", value = "ARCH",
      help = "host, host-NAME, sm90 ... (default: that of the rows); all: every smXX of the folder, for the "
        .. "formats with several" },
    { name = "sm", value = "N,N...", type = "whole", comma = true,
      help = "with --arch all: only the tables that programs built for these SM versions use" },
    { name = "out", value = "DIR", help = "folder of the tables (default: that of the rows)" },
    formats.option,
    { name = "stamp", value = "FILE",
      help = "render nothing if no input and no table has changed since the run that wrote this file" },
    { name = "install-prefix", value = "DIR",
      help = "also write the files for MPI libraries to DIR, with its path in them, so that they "
        .. "work from any folder" },
    { name = "mpich", value = "LIBRARY",
      help = "keep the selection of algorithms of this libmpich.so beside the rows, for the format mpich" },
    { name = "sm-version", value = "N",
      help = "as TensorRT-LLM's generator, for this SM version; see docs/trtllm.md" },
    { name = "save-csv-dir", value = "DIR",
      help = "without --data-dir: measure, with the rows in this folder (default: data)" },
    { name = "enable-auto", help = "without --arch: measure AUTO, the incumbent's lookup, and report it" },
    { name = "incumbent", trusted = true, value = "HEADER",
      help = "with --enable-auto: the header of that lookup" },
  }),
  example = "gentables generate --data-dir tables/host --arch host --out tables/host",
  run = function(args)
    local is_folder_named = args.out or args.data_dir
    trtllm_generator.prepare(args)
    if not args.data_dir then
      fail.input("generate needs --data-dir DIR; no rows of %s in %s", args.arch, data_folder.IN_WORDS)
    end
    local out = (args.out or args.data_dir):gsub("(.)/+$", "%1")
    local lock <close> = folder_lock.take(out) -- the table that stands there is read and written
    local before = args.stamp and not args.install_prefix and stamp.state(args, out)
    local current = before and stamp.tables(args.stamp, before)
    if current then
      for _, path in ipairs(current) do print_state("unchanged", path) end
      return
    end
    local source = model.load(args.data_dir, args.arch, args, out)
    if args.mpich then mpich.use(source, args.mpich) end
    -- Everything is rendered before anything is written: an error in the input changes no file.
    local files = render.files(source, args.formats)
    local texts = texts_in(out, files)
    local copies = args.install_prefix and installed(source, args, out)
    if not is_folder_named then render.refuse_to_replace(texts) end
    fail.unless_done(file.make_folder(out))
    local _ <close> = not lock and folder_lock.take(out) or nil
    if args.mpich then write { mpich.kept(source) } end
    write(texts)
    if copies then write(texts_in(copies.folder, copies.files)) end
    remove_stale(source, args.formats, files, out)
    if copies then remove_stale_copies(source, args.formats, copies) end
    gaps.print { source }
    predicted_in_words.print { source }
    trtllm_generator.report(args, source)
    if before then stamp.keep(args.stamp, before, args, out, source, sequences.field(texts, "path")) end
  end,
}
