-- gentables plot: the pictures of a folder of rows, or one picture of one file. pictures/list.lua lists the
-- kinds of pictures.
local data_folder = require "surroundings.data_folder"
local fail = require "base.fail"
local file = require "core.file"
local gnuplot = require "pages.gnuplot"
local help = require "reference.help"
local kinds = require "pictures.list"
local lists = require "lists.lists"
local pictures = require "pictures.draw"
local progress = require "system.progress"
local quantities = require "base.quantities"
local picture_slices = require "pictures.picture_slices"
local rows_folder = require "rows.rows_folder"
local sequences = require "base.sequences"
local sorted_keys = require("base.ordering").sorted_keys
local text = require "base.text"

local function without_slash(path) return (path:gsub("(.)/+$", "%1")) end

local function documented()
  return sequences.map(kinds.kinds, function(kind) return kind.documented and kind.name or nil end)
end

local function find_kind(name)
  local kind = kinds.find(name)
  if not kind then
    fail.input("no picture %q%s; valid pictures: %s", name, text.did_you_mean(name, kinds.names()),
      table.concat(kinds.names(), ", "))
  end
  return kind
end

-- The rows of pictures/list.lua with these names.
local function kinds_of(names)
  return lists.contains(names, "all") and kinds.kinds or sequences.map(names, find_kind)
end

local function check_gnuplot(endings)
  fail.unless_done(gnuplot.is_here())
  if lists.contains(endings, "png") then fail.unless_done(gnuplot.has_font()) end
end

local function print_left_out(rows)
  if rows.left_out then
    fail.note("shows %s; left out: %s; --dtype, --op and --mode choose", rows.shown, rows.left_out)
  end
end

-- ---- a folder ---------------------------------------------------------------------------------

local function print_shares(rows)
  local distribution = require("plots.best_strategy").distribution
  for _, tp in ipairs(rows.tp_sizes) do
    for _, fusion in ipairs(rows.fusions) do
      local slice, words = rows:slice(tp, fusion), {}
      for i, entry in ipairs(slice and distribution(slice) or {}) do
        words[i] = ("%s %.1f %%"):format(entry.strategy.name, 100 * entry.share)
      end
      if #words > 0 then
        io.stdout:write(("TP %s, %s: %s\n"):format(tp, fusion, table.concat(words, ", ")))
      end
    end
  end
end

-- The pictures of an arch: { rows, entries (of pictures.entries) }.
local function plan_of(args, arch, out, wanted, endings)
  local rows = picture_slices.of_folder(args.data_dir, arch, args)
  return { rows = rows, entries = pictures.entries(rows, out, wanted, endings) }
end

local function plot_arch(plan, out, bar)
  local rows = plan.rows
  local count, left_out = pictures.draw_all(rows, plan.entries, bar)
  bar:clear()
  print_left_out(rows)
  for _, line in ipairs(left_out) do fail.note("%s", line) end
  print_shares(rows)
  io.stdout:write(("%s in %s/viz\n"):format(quantities.counted(count, "picture"), out))
end

-- The pictures of all archs of the folder, or of --arch.
local function plot_folder(args)
  if args.fusion or args.tp then
    fail.input("--fusion and --tp go with plot KIND FILE; --data-dir draws all of them")
  end
  local endings, wanted = args.formats or { "png" }, kinds_of(args.kinds or documented())
  local archs = args.arch and { args.arch } or rows_folder.archs(args.data_dir)
  if #archs == 0 then rows_folder.only_arch(args.data_dir) end -- raises
  check_gnuplot(endings)
  local out = without_slash(args.out or args.data_dir)
  local plans = sequences.map(archs, function(arch) return plan_of(args, arch, out, wanted, endings) end)
  local bar = progress.new(#sequences.join(sequences.field(plans, "entries")))
  for _, plan in ipairs(plans) do plot_arch(plan, out, bar) end
end

-- The folder of rows of a command without one. Prints which it is.
local function found_folder(arch)
  local folder = data_folder.find(arch)
  if not folder then
    fail.input("plot needs --data-dir DIR, or KIND FILE; no benchmark.tp{N}.%s.csv in %s",
      arch or "{arch}", data_folder.IN_WORDS)
  end
  local archs = arch and { arch } or rows_folder.archs(folder)
  for _, found in ipairs(archs) do data_folder.print(folder, found) end
  return folder
end

-- ---- one picture ------------------------------------------------------------------------------

local function check_fusion(rows, name)
  local fusion = lists.find("fusions", name)
  if not fusion or not lists.contains(rows.fusions, fusion.name) then
    fail.input("%s: no rows of fusion %s%s; it has %s", rows.source.data_dir, name,
      text.did_you_mean(name, rows.fusions), table.concat(rows.fusions, ", "))
  end
  return fusion.name
end

local function tp_of(rows, wanted)
  if wanted then
    if rows.chosen[wanted] then return wanted end
  elseif #rows.tp_sizes == 1 then
    return rows.tp_sizes[1]
  end
  fail.input("%s: has TP %s; --tp with one of them is required", rows.source.data_dir,
    table.concat(rows.tp_sizes, ", "))
end

local function plot_one(args)
  local kind = find_kind(args[1])
  if not args[2] then fail.input("plot %s needs a FILE of rows; see gentables plot --help", kind.name) end
  if not args.fusion or not args.out then
    fail.input("plot %s needs --fusion F and --out PATH; see gentables plot --help", kind.name)
  end
  if args.arch or args.kinds then fail.input("--arch and --kinds go with plot --data-dir") end
  local ending = args.out:match("%.(%w+)$")
  if not pictures.formats[ending or ""] then
    fail.input("--out %s: ends in neither .png nor .svg", args.out)
  end
  check_gnuplot({ ending })
  local rows = picture_slices.of_files({ table.unpack(args, 2) }, args)
  local over_tp_sizes = require("plots." .. kind.name).over_tp_sizes
  local of = { fusion = check_fusion(rows, args.fusion), path = args.out,
    tp = not over_tp_sizes and tp_of(rows, args.tp) or nil }
  print_left_out(rows)
  local drawn, message, why = pictures.draw(kind.name, rows, of)
  if why == "empty" then
    fail.input("%s: %s; no picture%s", rows.source.data_dir, message,
      over_tp_sizes and "; a FILE for each of several TP sizes is required" or "")
  end
  if not drawn then fail.work("%s", message) end
  io.stdout:write("written   ", args.out, "\n")
end

return {
  summary = "Draws pictures of rows: the best strategy of each cell, its margin and its confidence.",
  positional = { name = "KIND FILE... | DIR", min = 0, max = math.huge, option = "data-dir",
    values = kinds.names(),
    when = function(words) return #words == 1 and not kinds.find(words[1]) and file.exists(words[1]) end,
    help = "DIR: the same as --data-dir DIR; KIND FILE: draw one picture; KIND is one of\n"
      .. help.names(kinds.kinds) },
  options = {
    { name = "data-dir", value = "DIR", arguments = false,
      help = "folder of benchmark.tp{N}.{arch}.csv (default: data, else the current folder)" },
    { name = "arch", value = "ARCH", arguments = false,
      help = "with --data-dir: host, host-NAME, sm90 ... (default: all)" },
    { name = "out", value = "PATH", arguments = false,
      help = "with --data-dir: folder of viz/{fusion}/ (default: DIR); with KIND: the .png or .svg" },
    { name = "formats", value = "LIST", comma = true, one_of = sorted_keys(pictures.formats),
      help = "with --data-dir: png, svg or png,svg (default: png)" },
    { name = "kinds", value = "LIST", arguments = false, comma = true,
      one_of = sequences.join { { "all" }, kinds.names() },
      help = "with --data-dir: all, or a list of KIND (default: " .. table.concat(documented(), ",") .. ")" },
    { name = "fusion", value = "F", arguments = true, values = lists.names("fusions"),
      help = "with KIND: the fusion" },
    { name = "tp", value = "N", type = "whole", arguments = true,
      help = "with KIND: the TP size, if FILE has several" },
    { name = "dtype", value = "D", values = lists.names("dtypes"),
      help = "data type, if rows have several (default: that of the spec's table)" },
    { name = "op", value = "OP", values = lists.names("ops"), help = "operation, likewise" },
    { name = "mode", value = "MODE", values = lists.names("modes"), help = "mode, likewise" },
  },
  example = "gentables plot --data-dir tables/host --arch host --out pictures\n" ..
    "  gentables plot heatmap tables/host/benchmark.tp2.host.csv --fusion NONE --out heatmap.png",
  run = function(args)
    if args.arch == "all" and not args[1] then args.arch = nil end -- the default
    if args[1] and args.data_dir then fail.input("plot takes --data-dir DIR, or KIND FILE, not both") end
    if args.data_dir then
      if not file.exists(args.data_dir) then fail.input("%s: no such folder", args.data_dir) end
      return plot_folder(args)
    end
    if args[1] then return plot_one(args) end
    args.data_dir = found_folder(args.arch)
    return plot_folder(args)
  end,
}
