-- gentables formats: the files for other programs, their readers, and what was done to show that a reader
-- obeys its file; with rows also what each file leaves out, and what that costs.
local data_folder = require "surroundings.data_folder"
local fail = require "base.fail"
local file = require "core.file"
local formats = require "formats.list"
local json = require "codec.json"
local model = require "formats.model"
local sequences = require "base.sequences"
local text = require "base.text"
local summary = require "formats.summary"

-- What the rows of a folder give a format: { missing = text } if they do not suffice, else { leaves_out =
-- lines }.
local function given(source, format, made)
  local missing = format.lacks and format.lacks(source)
  if missing then return { missing = missing } end
  local entry = sequences.find(made, function(one) return one.format == format end)
  return { leaves_out = json.array(entry and entry.lines or {}) }
end

-- The formats with these names, of a command line; without names all of them. Raises if one is unknown.
local function named(names)
  for _, name in ipairs(names) do
    if not formats.find(name) then
      fail.input("there is no format %q%s; gentables formats lists them", name,
        text.did_you_mean(name, formats.names()))
    end
  end
  local chosen = sequences.set(names)
  return sequences.filter(formats.list, function(format) return #names == 0 or chosen[format.name] end)
end

-- An entry for each format: { format, file, reader, arch = "all" if it needs --arch all, shown = { test, what
-- }, missing, leaves_out }; the last two with a source.
local function entries_of(list, source)
  local made = source and summary.formats(source) or {}
  return sequences.map(list, function(format)
    if source and not formats.is_for(format, source.arch_row) then return nil end
    local entry = source and given(source, format, made) or {}
    entry.format, entry.file, entry.reader = format.name, formats.shown_file(format), format.reader
    entry.arch = format.scope == "all" and "all" or nil
    entry.shown = format.shown
    return entry
  end)
end

-- `format`: its row in the list.
local function print_entry(entry, format)
  print(("%-22s %s%s"):format(entry.format, entry.file, entry.arch and " (--arch all)" or ""))
  local function line(name, words) print(("  %-10s %s"):format(name, words)) end
  line("read by", entry.reader)
  if entry.shown then
    line("shown", ("%s (%s)"):format(entry.shown.what, table.concat(formats.tests_of(format), ", ")))
  end
  if entry.missing then line("not made", entry.missing) end
  for _, words in ipairs(entry.leaves_out or {}) do line("leaves out", words) end
end

return {
  summary = "Prints the files for other programs: who reads them, and what was done to show that the reader\n"
    .. "obeys them. With --data-dir, only those of its arch, with what each leaves out and what that costs.",
  positional = { name = "NAME... | DIR", min = 0, max = math.huge, option = "data-dir",
    values = formats.names(), help = "only these formats; or one folder, the same as --data-dir DIR",
    when = function(words) return #words == 1 and not formats.find(words[1]) and file.exists(words[1]) end },
  options = {
    { name = "data-dir", value = "DIR", help = "folder of benchmark.tp{N}.{arch}.csv" },
    { name = "arch", value = "ARCH", help = "host, host-NAME, sm90 ... (default: that of the rows)" },
    { name = "json", help = "print JSON" },
  },
  example = "gentables formats --data-dir tables/host",
  run = function(args)
    local folder, list = args.data_dir, named(args)
    if args.arch and not folder then
      fail.input("--arch %s: name the folder of its rows, --data-dir DIR", args.arch)
    end
    local source = folder and model.load(folder, args.arch or data_folder.arch(folder), args, folder)
    local entries = entries_of(list, source)
    if #entries == 0 then
      fail.input("%s: not for %s; rows of another arch are required", table.concat(args, ", "), source.arch)
    end
    if args.json then return print(json.encode(json.array(entries))) end
    for i, entry in ipairs(entries) do
      if i > 1 then print() end
      print_entry(entry, formats.find(entry.format))
    end
  end,
}
