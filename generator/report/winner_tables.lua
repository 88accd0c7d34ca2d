-- The static pictures of report.html: a table per fusion, coloured by the winner, and the small pictures of
-- all of them. Hidden sizes are the rows, the largest on top, and tokens the columns, as in gentables plot.
local colours = require "pages.colours"
local report_data = require "report.report_data"
local lists = require "lists.lists"
local page = require "pages.page"
local quantities = require "base.quantities"
local summary = require "formats.summary"

local winner_tables = {}

-- The style of the strategies in the set `names`.
function winner_tables.style(names)
  local out = {}
  for _, strategy in ipairs(lists.strategies) do
    if names[strategy.name] then
      local colour, hatch = strategy.colour, ""
      if strategy.hatched then -- the colour around the letters keeps them legible
        hatch = ";background-image:var(--hatch);text-shadow:" .. ("0 0 2px %s,"):format(colour):rep(4)
          .. ("0 0 5px %s"):format(colour)
      end
      out[#out + 1] = (".%s{background-color:%s;color:%s;fill:%s%s}"):format(report_data.class(strategy.name),
        colour, colours.text_on(colour), colour, hatch)
    end
  end
  return table.concat(out, "\n")
end

-- ---- tables -----------------------------------------------------------------------------------

-- By bytes there is one row, without a name.
local function head(block)
  local out = {}
  for i, tokens in ipairs(block.num_tokens) do
    local text = block.sizes_only and quantities.exact_bytes(tokens) or ("%d"):format(tokens)
    out[i] = '<th scope="col">' .. text
  end
  return '<thead><tr><th scope="col">' .. (block.sizes_only and "size" or "hidden \\ tokens")
    .. table.concat(out) .. "</thead>"
end

-- name -> { open = its cell's tag, changed = the same if the incumbent has another strategy, mark }
local tags = setmetatable({}, { __index = function(self, name)
  local class = report_data.class(name)
  self[name] = { open = ("<td class=%s>"):format(class), changed = ('<td class="%s differs">'):format(class),
    mark = lists.find("strategies", name).mark }
  return self[name]
end })

-- A cell: its strategy (nil: unmeasured), the text behind its mark, and whether the other table has another
-- strategy.
local function cell_text(name, mark, is_changed)
  if not name then return is_changed and '<td class="none differs">–' or '<td class="none">–' end
  local tag = tags[name]
  return (is_changed and tag.changed or tag.open) .. tag.mark .. mark
end

-- A table over the hidden sizes and token counts of `block`; get(h, t) returns a cell with its tag.
function winner_tables.table(block, class, caption, get)
  local out = { ('<table class="%s"><caption>%s</caption>%s<tbody>'):format(class, page.escape(caption),
    head(block)) }
  for h = #block.hidden_sizes, 1, -1 do
    out[#out + 1] = '\n<tr><th scope="row">' .. (block.sizes_only and "" or block.hidden_sizes[h])
    for t = 1, #block.num_tokens do out[#out + 1] = get(h, t) end
    out[#out + 1] = "</tr>"
  end
  out[#out + 1] = "</table>"
  return table.concat(out)
end

-- A strategy in a legend.
function winner_tables.key(strategy)
  return ('<li title="%s"><span class="key %s">%s</span> %s</li>'):format(page.escape(strategy.help),
    report_data.class(strategy.name), page.escape(strategy.mark), page.escape(strategy.name))
end

-- The incumbent's choices for the cells of a fusion, [h][t] = name or false; nil if it has none. `old` is a
-- core.table.
function winner_tables.old_choices(block, fusion, old)
  local any, out = false, {}
  local key = { world_size = block.world_size, nodes = block.nodes, dtype = block.dtype, op = block.op,
    mode = block.mode, fusion = fusion.name }
  for h, hidden_size in ipairs(block.hidden_sizes) do
    out[h] = {}
    for t, num_tokens in ipairs(block.num_tokens) do
      key.hidden_size, key.num_tokens = hidden_size, num_tokens
      local cell = old:find(key)
      out[h][t] = cell and cell.strategy or false
      any = any or cell ~= nil
    end
  end
  return any and out or nil
end

local function winner(cell) return cell and cell.strategy or nil end

-- The table of a fusion (of summary.blocks); `old`: of winner_tables.old_choices, or nil. "?": uncertain.
function winner_tables.new_table(block, fusion, caption, old)
  return winner_tables.table(block, "cells new", caption, function(h, t)
    local cell = fusion.rows[h][t]
    return cell_text(winner(cell), cell and summary.is_uncertain(cell) and "?" or "",
      old ~= nil and (old[h][t] or nil) ~= winner(cell))
  end)
end

-- The table of the incumbent's choices.
function winner_tables.old_table(block, fusion, caption, old)
  return winner_tables.table(block, "cells old", caption, function(h, t)
    local name = old[h][t] or nil
    return cell_text(name, "", name ~= winner(fusion.rows[h][t]))
  end)
end

-- ---- by bytes ---------------------------------------------------------------------------------

local function percent(share, digits)
  return share and quantities.fixed(100 * share, digits) .. " %" or ""
end

-- Bandwidths in GB/s, three digits.
local function bandwidth(bytes, time_us, factor)
  return factor and quantities.three_digits(factor * bytes / time_us / 1000) or ""
end

local size_columns = { "size", "choice", "time (µs)", "runner-up", "margin", "confidence",
  "algbw (GB/s)", "busbw (GB/s)" }
local size_texts = { choice = true, ["runner-up"] = true }

local function size_row(block, bytes, cell)
  if not cell then return { quantities.exact_bytes(bytes), "unmeasured", "", "", "", "", "", "" } end
  local sure = percent(cell.confidence, 1)
  if summary.is_uncertain(cell) then sure = sure .. (sure ~= "" and ", " or "") .. "uncertain" end
  return { quantities.exact_bytes(bytes), cell.strategy, quantities.three_digits(cell.time_us),
    cell.runner_up or "none", percent(cell.margin, 1), sure, bandwidth(bytes, cell.time_us, 1),
    bandwidth(bytes, cell.time_us, report_data.bus_factor(block)) }
end

-- The winners of a fusion of a block by bytes, a row for each size, with margin and confidence.
function winner_tables.size_table(block, fusion)
  local out = { '<table class="sizes"><thead><tr>' }
  local function add(tag, i, text)
    local class = size_texts[size_columns[i]] and "" or ' class="number"'
    out[#out + 1] = ("<%s%s%s>%s</%s>"):format(tag, tag == "th" and ' scope="col"' or "", class,
      page.escape(text), tag)
  end
  for i, title in ipairs(size_columns) do add("th", i, title) end
  out[#out + 1] = "</tr></thead>\n<tbody>"
  for t, bytes in ipairs(block.num_tokens) do
    out[#out + 1] = "\n<tr>"
    for i, text in ipairs(size_row(block, bytes, fusion.rows[1][t])) do add("td", i, text) end
    out[#out + 1] = "</tr>"
  end
  out[#out + 1] = "</tbody></table>"
  return table.concat(out)
end

-- ---- small pictures ---------------------------------------------------------------------------

-- The winners as paths, one for each strategy: runs of cells with the same winner, from left to right.
local function paths(block, fusion)
  local by_name, last_hidden = {}, #block.hidden_sizes
  for h, row in ipairs(fusion.rows) do
    local t, count = 1, #row
    while t <= count do
      local first, name = t, row[t] and row[t].strategy
      while t < count and (row[t + 1] and row[t + 1].strategy) == name do t = t + 1 end
      if name then
        local path = by_name[name] or {}
        by_name[name] = path
        path[#path + 1] = ("M%d %dh%dv1h-%d"):format(first - 1, last_hidden - h, t - first + 1, t - first + 1)
      end
      t = t + 1
    end
  end
  return by_name
end

-- A small picture of a fusion's winners, as SVG within the page; a white corner is an uncertain choice.
function winner_tables.small_picture(block, fusion)
  local out = { ('<svg viewBox="0 0 %d %d" preserveAspectRatio="none" aria-hidden="true">'):format(
    #block.num_tokens, #block.hidden_sizes) }
  local by_name = paths(block, fusion)
  for _, strategy in ipairs(lists.strategies) do
    local path = by_name[strategy.name]
    if path then
      local class = report_data.class(strategy.name)
      out[#out + 1] = ('<path class="%s" d="%s"/>'):format(class, table.concat(path))
    end
  end
  local uncertain = {}
  for h, row in ipairs(fusion.rows) do
    for t, cell in ipairs(row) do
      if cell and summary.is_uncertain(cell) then
        uncertain[#uncertain + 1] = ("M%d %dv.4l-.4-.4z"):format(t, #block.hidden_sizes - h)
      end
    end
  end
  if #uncertain > 0 then
    out[#out + 1] = ('<path class="uncertain" d="%s"/>'):format(table.concat(uncertain))
  end
  out[#out + 1] = "</svg>"
  return table.concat(out)
end

return winner_tables
