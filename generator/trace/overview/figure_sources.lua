-- The lines "from FILE" below figures: links to the files that have them.
local page = require "pages.page"
local sequences = require "base.sequences"

local figure_sources = {}

local MOST = 16 -- links of one line

-- A link to a file, named by `words`; its path below the page is its hint.
function figure_sources.link(results, path, words)
  return ('<a href="%s" title="%s">%s</a>'):format(page.escape(results:link(path)),
    page.escape(results:relative(path)), page.escape(words))
end

-- The names of files, with their folders if several have one name.
local function names_of(paths)
  local names = sequences.map(paths, function(path) return path:match "[^/]*$" end)
  if #sequences.distinct(names) == #names then return names end
  return sequences.map(paths, function(path) return path:match "[^/]*/?[^/]*$" end)
end

-- The line for these paths, as markup; words[i], if given, follows the name of the i-th file.
function figure_sources.line(results, paths, words)
  local names = words and sequences.map(paths, function(path, i)
    return ("%s (%s)"):format(path:match "[^/]*$", words[i])
  end) or names_of(paths)
  local shown = table.move(paths, 1, math.min(#paths, MOST), 1, {})
  local links = sequences.map(shown, function(path, i)
    return figure_sources.link(results, path, names[i])
  end)
  if #paths > #shown then links[#links + 1] = ("and %d more, below Files"):format(#paths - #shown) end
  return '<p class="source">from ' .. table.concat(links, ", ") .. "</p>\n"
end

-- Adds the line for these paths.
function figure_sources.add(out, results, paths) out:html(figure_sources.line(results, paths)) end

return figure_sources
