-- The sections of the page on incomplete parts and on all files.
local columns_of = require "trace.overview.overview_columns"
local figure_sources = require "trace.overview.figure_sources"
local file = require "core.file"
local quantities = require "base.quantities"
local sequences = require "base.sequences"

local overview_files = {}

local named = columns_of.named

local MOST_NOTES, MOST_LINKS = 40, 1000

-- ---- incomplete parts --------------------------------------------------------------------------

local function notes_of(results, run)
  local sheet = results:sheet(run.collectives, "nccl_notes")
  local of_sheet = sheet and sequences.field(sheet.rows, "note") or {}
  return sequences.distinct(sequences.join { run.notes or {}, of_sheet }), sheet and sheet.path
end

-- Appends { trace, what, count, note } to `rows`, and the paths of the sheets to `paths`.
local function add_incomplete(results, run, rows, paths)
  local prefix = run.name and run.name .. ", " or ""
  local function add(sheet, label)
    if not sheet then return end
    paths[#paths + 1] = sheet.path
    for _, row in ipairs(sheet.rows) do
      rows[#rows + 1] = { prefix .. (label or "rank " .. row.rank), row.what, tonumber(row.count), row.note }
    end
  end
  add(results:sheet(run.batch, "incomplete"))
  for _, trace in ipairs(run.traces) do add(results:sheet(trace.csvs, "incomplete"), trace.label) end
end

-- Adds the section on incomplete parts, if there are any. `failures`: texts.
function overview_files.add_incomplete(out, results, runs, failures)
  local texts, rows, paths = table.move(failures, 1, #failures, 1, {}), {}, {}
  for _, run in ipairs(runs) do
    local notes, path = notes_of(results, run)
    for _, note in ipairs(notes) do texts[#texts + 1] = run.name and run.name .. ": " .. note or note end
    if path then paths[#paths + 1] = path end
    add_incomplete(results, run, rows, paths)
  end
  if #texts + #rows == 0 then return end
  out:section("Incomplete parts")
  for i, text in ipairs(texts) do
    if i > MOST_NOTES then break end
    out:html(('<p class="missing">%s</p>\n'):format(out.escape(text)))
  end
  if #texts > MOST_NOTES then out:note(("and %d more"):format(#texts - MOST_NOTES)) end
  if #rows > 0 then
    local shown = table.move(rows, 1, math.min(#rows, MOST_NOTES), 1, {})
    out:table { columns = { "trace", "what", "count", named("note") }, rows = shown }
    if #shown < #rows then out:note(("%d of %d"):format(#shown, #rows)) end
  end
  if #paths > 0 then figure_sources.add(out, results, paths) end
end

-- ---- files -------------------------------------------------------------------------------------

-- The files in these folders and below, but hidden ones and the page itself: { { folder, names }... }.
local function listed(folders, itself)
  local out = {}
  local function walk(folder)
    local names, below = {}, {}
    for _, name in ipairs(file.list(folder) or {}) do
      local path = folder .. "/" .. name
      if not name:find "^%." and not name:find "%.tmp$" and path ~= itself then
        table.insert(file.status(path) == "folder" and below or names, name)
      end
    end
    if #names > 0 then out[#out + 1] = { folder = folder, names = names } end
    for _, name in ipairs(below) do walk(folder .. "/" .. name) end
  end
  for _, folder in ipairs(folders) do walk(folder) end
  return out
end

local function add_folder(out, results, one, with_links)
  local place = results:relative(one.folder .. "/")
  if place == "" then place = "./" end
  out:html(("<details><summary>%s %s</summary>\n"):format(out.escape(place),
    quantities.counted(#one.names, "file")))
  if with_links then
    out:html("<ul>" .. table.concat(sequences.map(one.names, function(name)
      return "<li>" .. figure_sources.link(results, one.folder .. "/" .. name, name) .. "</li>"
    end)) .. "</ul>\n")
  else
    out:html("<p>" .. figure_sources.link(results, one.folder .. "/", place) .. "</p>\n")
  end
  out:html "</details>\n"
end

-- Adds the section with all files in these folders, and these single files.
function overview_files.add(out, results, folders, files)
  local all, count = listed(folders, results.page), #files
  for _, one in ipairs(all) do count = count + #one.names end
  out:section("Files", { note = quantities.counted(count, "file") .. " beside this page" })
  if #files > 0 then
    out:html("<ul>" .. table.concat(sequences.map(files, function(path)
      return "<li>" .. figure_sources.link(results, path, results:relative(path)) .. "</li>"
    end)) .. "</ul>\n")
  end
  for _, one in ipairs(all) do add_folder(out, results, one, count <= MOST_LINKS) end
end

return overview_files
