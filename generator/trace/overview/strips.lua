-- Bars of a page: a row for each item, with its name, a bar of coloured parts, and its numbers as text. Bars
-- are SVG that stretches with the page; texts are HTML, so that they keep their size on phones.
--
--   strips.legend { { class = "computation", text = "computation" }... }
--   strips.of({ { name = "rank 0", text = "3.990 ms", hint =, parts = { { class =, from = 0, to = 0.4 }...
--     } }... })
--
-- Both return markup. Shares are of the width of a bar. Classes: templates/reports/overview.css.
local page = require "pages.page"
local sequences = require "base.sequences"

local strips = {}

local escape = page.escape

local function rectangle(part)
  local width = part.to - part.from
  if width <= 0 then return "" end
  return ('<rect class="%s" x="%.3f" width="%.3f" height="10"/>'):format(escape(part.class),
    1000 * part.from, 1000 * width)
end

local function strip(item)
  local hint = escape(item.hint or (item.name .. ": " .. item.text))
  return ('<div class="strip"><span class="name">%s</span><svg viewBox="0 0 1000 10" '
    .. 'preserveAspectRatio="none" role="img" aria-label="%s"><title>%s</title>%s</svg>'
    .. '<span class="value">%s</span></div>\n'):format(escape(item.name), hint, hint,
      table.concat(sequences.map(item.parts, rectangle)), escape(item.text))
end

function strips.of(items)
  return '<div class="strips">\n' .. table.concat(sequences.map(items, strip)) .. "</div>\n"
end

function strips.legend(entries)
  return '<p class="legend">' .. table.concat(sequences.map(entries, function(entry)
    return ('<span><svg viewBox="0 0 10 10"><rect class="%s" width="10" height="10"/></svg>%s</span>'):format(
      escape(entry.class), escape(entry.text))
  end), " ") .. "</p>\n"
end

return strips
