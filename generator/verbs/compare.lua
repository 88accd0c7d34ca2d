-- gentables compare: two or more sweeps in one page, side by side and as differences.
-- report/sweep_comparison.lua has the numbers, report/comparison_page.lua the page.
local fail = require "base.fail"
local gaps = require "formats.gaps"
local model = require "formats.model"
local rows_folder = require "rows.rows_folder"

local function without_slash(path) return (path:gsub("(.)/+$", "%1")) end

local function check(args)
  local labels, archs = args.label or {}, args.arch or {}
  if #labels > 0 and #labels ~= #args then
    fail.input("compare has %d folders and %d --label; none, or one for each, is required", #args, #labels)
  end
  if #archs > 1 and #archs ~= #args then
    fail.input("compare has %d folders and %d --arch; none, one for all, or one for each, is required",
      #args, #archs)
  end
end

-- A label for each sweep: that of --label, or the last part of its folder; with a number if an earlier sweep
-- has the same.
local function labels_of(args, folders)
  local out, seen = {}, {}
  for i, folder in ipairs(folders) do
    local label = args.label and args.label[i] or folder:match("([^/]+)$") or folder
    local unique, count = label, 1
    while seen[unique] do
      count = count + 1
      unique = ("%s (%d)"):format(label, count)
    end
    seen[unique] = true
    out[i] = unique
  end
  return out
end

return {
  summary = "Writes one HTML page with sweeps side by side: which times and which choices differ.",
  positional = { name = "DIR DIR...", min = 2, max = math.huge,
    help = "folders of benchmark.tp{N}.{arch}.csv; the first is the base" },
  options = {
    { name = "label", value = "L", many = true,
      help = "label of a sweep; once for each, in their order (default: the folders' names)" },
    { name = "arch", value = "ARCH", many = true,
      help = "for folders with rows of several archs: once for all, or once for each" },
    { name = "out", value = "FILE", help = "the page, FILE.html", required = true },
  },
  example = "gentables sweep tables/host/spec.lua --out again --tp 2 --budget 20\n"
    .. "  gentables compare tables/host again --label committed --label again --out compare.html",
  run = function(args)
    check(args)
    local folders, sources = {}, {}
    for i, folder in ipairs(args) do folders[i] = without_slash(folder) end
    for i, folder in ipairs(folders) do
      local given = args.arch and (args.arch[i] or args.arch[1])
      sources[i] = model.load(folder, rows_folder.only_arch(folder, given))
    end
    local page = require("report.comparison_page").page(sources, labels_of(args, folders))
    fail.unless_done(page:write(args.out))
    io.stdout:write("written   ", args.out, "\n")
    gaps.print(sources)
  end,
}
