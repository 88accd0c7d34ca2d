-- The choices of TP 2 and NONE that artifacts show, read from their text: hidden size -> tokens -> strategy,
-- with "?" behind an uncertain one; nil for unmeasured cells.
local file = require "core.file"
local lists = require "lists.lists"
local process = require "core.process"
local sorted_keys = require("base.ordering").sorted_keys

local artifacts = {}

local name_of_mark, strategy_of_class = {}, {}
for index, strategy in ipairs(lists.strategies) do
  name_of_mark[strategy.mark], strategy_of_class["s" .. index] = strategy.name, strategy.name
end

-- A name or a mark with "?" and other signs behind it, as name and "?".
local function with_state(text, names)
  local name, signs = text:match("^([%w_-]+)(.*)$")
  assert(not names or names[name], text)
  return (names and names[name] or name) .. (signs:find("?", 1, true) and "?" or "")
end

-- report.md; `names`: its short name of a strategy -> the name.
function artifacts.of_markdown(text, names)
  local out, tokens = {}, {}
  local part = text:match("\n### TP 2, NONE[^\n]*\n\n(.-)\n\n")
  for line in (part .. "\n"):gmatch("([^\n]*)\n") do
    local cells = {}
    for cell in line:gmatch("| ([^|]*) %f[|]") do cells[#cells + 1] = cell end
    if cells[1] == "hidden" then
      for i = 2, #cells do tokens[i] = math.tointeger(cells[i]) end
    elseif cells[1] and not line:find("^|%-") then
      local hidden_size = math.tointeger(cells[1])
      out[hidden_size] = {}
      for i = 2, #cells do
        out[hidden_size][tokens[i]] = cells[i] ~= "–" and with_state(cells[i], names) or nil
      end
    end
  end
  return out
end

-- The table of report.html that needs no script.
function artifacts.of_html(text)
  local out, tokens = {}, {}
  local part = text:match('<table class="cells new">(.-)</table>')
  for count in part:match("<thead>(.-)</thead>"):gmatch('<th scope="col">(%d+)') do
    tokens[#tokens + 1] = math.tointeger(count)
  end
  for hidden_size, cells in part:gmatch('<th scope="row">(%d+)(.-)</tr>') do
    local row, t = {}, 0
    for class, mark in cells:gmatch('<td class="?([%w]+)[^>]*>([^<]*)') do
      t = t + 1
      if class ~= "none" then
        row[tokens[t]] = with_state(mark, name_of_mark)
        assert(row[tokens[t]]:gsub("%?", "") == strategy_of_class[class])
      end
    end
    out[math.tointeger(hidden_size)] = row
  end
  return out
end

-- best_strategy.svg: the boxes of its only panel, and the white corners. `axes`: hidden_sizes and num_tokens
-- of the table. A box is a run of cells; the width of a cell is that of the panel by the number of columns.
function artifacts.of_svg(text, axes)
  local boxes, corners, tops, left, right = {}, {}, {}, math.huge, 0
  local part = text:match("<g>(.-)</g>")
  local rectangle = '<rect x="(%d+)" y="(%d+)" width="(%d+)" height="%d+" class="([%w_]+)"'
  for x, y, width, class in part:gmatch(rectangle) do
    x, y, width = math.tointeger(x), math.tointeger(y), math.tointeger(width)
    boxes[#boxes + 1] = { x = x, y = y, width = width, class = class }
    tops[y], left, right = true, math.min(left, x), math.max(right, x + width)
  end
  for x, y in part:gmatch('<path class="uncertain" d="M(%d+),(%d+) ') do
    corners[(math.tointeger(x) + 1) .. " " .. (math.tointeger(y) - 1)] = true
  end
  local out, row_of, cell_width = {}, {}, (right - left) // #axes.num_tokens
  local ordered = sorted_keys(tops)
  assert(#ordered == #axes.hidden_sizes)
  for i, y in ipairs(ordered) do
    row_of[y] = axes.hidden_sizes[#ordered + 1 - i]
    out[row_of[y]] = {}
  end
  for _, box in ipairs(boxes) do
    for x = box.x, box.x + box.width - 1, cell_width do
      local state = corners[(x + cell_width) .. " " .. box.y] and "?" or ""
      out[row_of[box.y]][axes.num_tokens[(x - left) // cell_width + 1]] =
        box.class ~= "unmeasured" and box.class .. state or nil
    end
  end
  return out
end

-- The sheet "table" of a workbook, by its titles. Needs unzip.
function artifacts.of_workbook(path)
  local pipe <close> = assert(io.popen(("unzip -p '%s' xl/worksheets/sheet2.xml"):format(path)))
  local column_of, out = nil, {}
  for row in pipe:read("a"):gmatch("<row [^>]*>(.-)</row>") do
    local values = {}
    for column, content in row:gmatch('<c r="(%u+)%d+"[^>]*>(.-)</c>') do
      values[column] = content:match("<v>(.-)</v>") or content:match("<t[^>]*>(.-)</t>")
    end
    if not column_of then
      column_of = {}
      for column, title in pairs(values) do column_of[title] = column end
    else
      local function get(title) return values[column_of[title]] end
      local hidden_size, strategy = math.tointeger(get "hidden size"), get "strategy"
      out[hidden_size] = out[hidden_size] or {}
      out[hidden_size][math.tointeger(get "tokens")] = strategy ~= "unmeasured"
        and strategy .. (get "state" == "uncertain" and "?" or "") or nil
    end
  end
  return out
end

function artifacts.has_unzip()
  local child = process.start { "unzip", "-v" }
  if child then child:close(10) end
  return child ~= nil
end

-- The text of a page (of pages/page.lua).
function artifacts.text_of(page, folder)
  local path = folder .. "/page.html"
  assert(page:write(path))
  local text = file.read(path)
  os.remove(path)
  return text
end

-- The choices of anything with these axes: get(h, t) returns its value, or nil; name(value) is the strategy.
function artifacts.of_axes(axes, get, name)
  local out = {}
  for h, hidden_size in ipairs(axes.hidden_sizes) do
    out[hidden_size] = {}
    for t, num_tokens in ipairs(axes.num_tokens) do
      local value = get(h, t)
      out[hidden_size][num_tokens] = value and name(value) or nil
    end
  end
  return out
end

-- The strategies in the marks of a picture of gnuplot: get(h, t) returns its cell, or nil.
function artifacts.of_marks(axes, get)
  return artifacts.of_axes(axes, get, function(cell) return with_state(cell.text, name_of_mark) end)
end

return artifacts
