-- Pages for people: one HTML file that needs no network: escaped text, tables that sort and copy, figures
-- beside each other, light and dark, for phones and print, readable without JavaScript. The skeleton, style
-- and script are templates/reports/page.{html.tmpl,css,js}.
--
--   local page = require "pages.page"
--   local p = page.new("Two sweeps", { lead = "What a reader should know first." })
--   p:section("Latency", { note = "median over ranks" })   -- starts a section; the page's menu lists them
--   p:text("A paragraph.")                                 -- text is escaped everywhere
--   p:table { caption = "Per size", columns = { "size", { title = "time (us)", format = "%.2f" } },
--             rows = { { "1 KiB", 12.34 }, { "2 KiB", nil } } }
--   p:figures { { title = "base", png = bytes }, { title = "new", missing = "plots/violin.png" } }
--   p:missing("rank 3")                                    -- a note: "missing: rank 3"
--   assert(p:write(path))                         -- true | nil, message; whole or not at all
--
-- Functions that add something return the page, so that calls can be chained.
local file = require "core.file"
local json = require "codec.json"
local template = require "codec.template"
local valid_utf8 = require("base.text").valid_utf8

local page = {}
page.__index = page

-- ---- text -------------------------------------------------------------------------------------

local entities = { ["&"] = "&amp;", ["<"] = "&lt;", [">"] = "&gt;", ['"'] = "&quot;", ["'"] = "&#39;" }

-- Text for the page, between tags or within the quotes of an attribute. Control characters are spaces; bytes
-- that are no UTF-8 are U+FFFD, so that a broken name cannot break the page.
function page.escape(text)
  return (valid_utf8(tostring(text)):gsub("[&<>\"']", entities):gsub("[%c\127]", function(char)
    return (char == "\n" or char == "\t") and char or " "
  end))
end

local escape = page.escape

-- bytes -> base64
local pairs_of_digits
function page.base64(bytes)
  if not pairs_of_digits then
    local digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    pairs_of_digits = {}
    for i = 0, 4095 do
      local high, low = (i >> 6) + 1, (i & 63) + 1
      pairs_of_digits[i] = digits:sub(high, high) .. digits:sub(low, low)
    end
  end
  local out, count = {}, 0
  for at = 1, #bytes - 2, 3 do
    local a, b, c = bytes:byte(at, at + 2)
    out[count + 1] = pairs_of_digits[a << 4 | b >> 4]
    out[count + 2] = pairs_of_digits[(b & 15) << 8 | c]
    count = count + 2
  end
  local rest = #bytes % 3
  if rest > 0 then
    local a, b = bytes:byte(-rest, -1)
    local last = pairs_of_digits[((b or 0) & 15) << 8]
    out[count + 1] = pairs_of_digits[a << 4 | (b or 0) >> 4] .. (b and last:sub(1, 1) .. "=" or "==")
  end
  return table.concat(out)
end

-- A value as JSON on one line. No "<" is in it, so that no text within it ends its script element.
function page.json(value)
  return (json.compact(value):gsub("<", "\\u003c"))
end

-- ---- the page ---------------------------------------------------------------------------------

-- options.lead: the text below the title, one paragraph per line, with `code` in backticks; options.style,
-- options.script: text of its own beside that of every page (trusted: files of templates/, never input).
function page.new(title, options)
  options = options or {}
  return setmetatable({ title = title, lead = options.lead, styles = { options.style },
    scripts = { options.script }, body = {}, menu = {}, ids = {}, tables = 0 }, page)
end

-- Adds markup unchanged. Text of others must go through page.escape first.
function page:html(markup)
  self.body[#self.body + 1] = markup
  return self
end

local function id_of(self, title)
  local base = title:lower():gsub("[^%w]+", "-"):gsub("^%-+", ""):gsub("%-+$", "")
  if base == "" then base = "section" end
  local id, count = base, 1
  while self.ids[id] do
    count = count + 1
    id = base .. "-" .. count
  end
  self.ids[id] = true
  return id
end

local function close_section(self)
  if self.in_section then self:html("</section>\n") end
  self.in_section = false
end

-- Starts a section, which the next one ends. options: note = a sentence below the heading; id; class.
function page:section(title, options)
  options = options or {}
  close_section(self)
  local id = options.id or id_of(self, title)
  self.menu[#self.menu + 1] = { id = id, title = title, class = options.class or "" }
  self:html(('<section id="%s"%s>\n<h2>%s</h2>\n'):format(escape(id),
    options.class and (' class="%s"'):format(escape(options.class)) or "", escape(title)))
  self.in_section = true
  if options.note then self:html(('<p class="note">%s</p>\n'):format(escape(options.note))) end
  return self
end

-- A heading within a section.
function page:heading(title) return self:html(("<h3>%s</h3>\n"):format(escape(title))) end

function page:text(text) return self:html(("<p>%s</p>\n"):format(escape(text))) end

-- A paragraph in small print.
function page:note(text) return self:html(('<p class="note">%s</p>\n'):format(escape(text))) end

-- Adds a note that something is missing here.
function page:missing(what)
  return self:html(('<p class="missing">missing: %s</p>\n'):format(escape(what)))
end

-- A list of facts: { { name, value }, ... }; those without value are left out.
function page:facts(list)
  self:html('<dl class="facts">\n')
  for _, fact in ipairs(list) do
    if fact[2] ~= nil then
      self:html(("<dt>%s</dt><dd>%s</dd>\n"):format(escape(fact[1]), escape(fact[2])))
    end
  end
  return self:html("</dl>\n")
end

-- ---- tables -----------------------------------------------------------------------------------

local function column_of(column)
  return type(column) == "table" and column or { title = column }
end

-- One cell: nil, a text, a number, or { text =, value = what it sorts by, class =, title = }.
local function cell(value, column)
  local class, sort_by, hint = column.class, nil, nil
  if type(value) == "table" then
    class = value.class or class
    sort_by, hint, value = value.value, value.title, value.text
  end
  local is_number = math.type(value) ~= nil or sort_by ~= nil
  if math.type(value) then
    sort_by = sort_by or value
    local text = column.format and column.format:format(value) or tostring(value)
    if tonumber(text) == sort_by then sort_by = nil end
    value = text
  end
  local classes = (is_number and "number" or "") .. (class and (is_number and " " or "") .. class or "")
  return ("<td%s%s%s>%s"):format(classes ~= "" and (' class="%s"'):format(escape(classes)) or "",
    sort_by ~= nil and (' data-sort="%s"'):format(escape(sort_by)) or "",
    hint and (' title="%s"'):format(escape(hint)) or "", value == nil and "" or escape(value))
end

-- Whether a column has numbers; its head is then aligned to the right.
local function is_numeric(rows, index)
  for _, row in ipairs(rows) do
    local value = row[index]
    if type(value) == "table" then value = value.value or value.text end
    if value ~= nil then return math.type(value) ~= nil end
  end
  return false
end

-- The table without those columns of options.may_go that have the same value in every row.
local function without_constant(options)
  local kept, rows = {}, {}
  for i, column in ipairs(options.columns) do
    local same = false
    for _, title in ipairs(options.may_go or {}) do same = same or title == column end
    for _, row in ipairs(options.rows) do same = same and row[i] == options.rows[1][i] end
    if not same then kept[#kept + 1] = i end
  end
  if #kept == #options.columns then return options.columns, options.rows end
  local columns = {}
  for k, i in ipairs(kept) do columns[k] = options.columns[i] end
  for r, row in ipairs(options.rows) do
    rows[r] = {}
    for k, i in ipairs(kept) do rows[r][k] = row[i] end
  end
  return columns, rows
end

-- A table. `options`: caption; columns = { title | { title =, format = of numbers, class =, help = } ... };
-- rows = { { value... } ... }, where a value is nil (empty), a text, a number (formatted by the column), or
-- { text =, value =, class =, title = }; plain = true: neither sorts nor copies; note; may_go =
-- { titles }: columns that are left out if all rows have the same value. Classes that have a style: better,
-- worse, changed, uncertain, missing.
function page:table(options)
  local out = {}
  local function add(text) out[#out + 1] = text end
  local kept, rows = without_constant(options)
  local columns = {}
  for i, column in ipairs(kept) do columns[i] = column_of(column) end
  add(('<div class="table"><table%s>\n'):format(options.plain and "" or ' class="sortable"'))
  if options.caption then add(("<caption>%s</caption>\n"):format(escape(options.caption))) end
  add("<thead><tr>")
  for i, column in ipairs(columns) do
    add(('<th scope="col"%s%s>%s</th>'):format(is_numeric(rows, i) and ' class="number"' or "",
      column.help and (' title="%s"'):format(escape(column.help)) or "", escape(column.title)))
  end
  add("</tr></thead>\n<tbody>\n")
  for _, row in ipairs(rows) do
    add("<tr>")
    for i, column in ipairs(columns) do add(cell(row[i], column)) end
    add("</tr>\n")
  end
  add("</tbody></table></div>\n")
  if options.note then add(('<p class="note">%s</p>\n'):format(escape(options.note))) end
  return self:html(table.concat(out))
end

-- ---- figures ----------------------------------------------------------------------------------

-- The data URI of these bytes, for an <img>.
function page.data_uri(bytes, type_of)
  return ("data:%s;base64,%s"):format(type_of, page.base64(bytes))
end

local function figure(entry)
  local caption = ("<figcaption>%s</figcaption>"):format(escape(entry.title or ""))
  if entry.missing then
    return ('<figure>%s<p class="missing">missing: %s</p></figure>\n'):format(caption, escape(entry.missing))
  end
  if entry.markup then return ("<figure>%s%s</figure>\n"):format(caption, entry.markup) end
  local uri = entry.png and page.data_uri(entry.png, "image/png") or page.data_uri(entry.svg, "image/svg+xml")
  return ('<figure>%s<img src="%s" alt="%s" loading="lazy"></figure>\n'):format(caption, uri,
    escape(entry.alt or entry.title or ""))
end

-- Figures beside each other; below each other where the window is narrow. Each is { title =, alt =, and one
-- of png = bytes, svg = text (shown as an image: its scripts do not run), markup = our own SVG, or
-- missing = text }.
function page:figures(list)
  self:html('<div class="figures">\n')
  for _, entry in ipairs(list) do self:html(figure(entry)) end
  return self:html("</div>\n")
end

-- ---- data, and the whole ----------------------------------------------------------------------

-- Data for the page's script: JSON.parse(document.getElementById(id).textContent). `text`: JSON already, of
-- page.json.
function page:data(id, value, text)
  return self:html(('<script type="application/json" id="%s">%s</script>\n'):format(escape(id),
    text or page.json(value)))
end

local function read(name)
  local path = gentables.home .. "/templates/reports/" .. name
  return assert(file.read(path))
end

-- The page as text.
function page:render()
  close_section(self)
  table.insert(self.styles, 1, read("page.css"))
  table.insert(self.scripts, 1, read("page.js"))
  local skeleton = template.load(gentables.home .. "/templates/reports/page.html.tmpl")
  local text = skeleton { title = self.title, lead = self.lead or "", menu = self.menu, escape = escape,
    body = table.concat(self.body), style = table.concat(self.styles, "\n"),
    script = table.concat(self.scripts, "\n") }
  table.remove(self.styles, 1)
  table.remove(self.scripts, 1)
  return text
end

-- Writes the page to `path`. Returns true | nil, message.
function page:write(path) return file.write(path, self:render()) end

return page
