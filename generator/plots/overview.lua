-- The best strategy of each cell, for all TP sizes and fusions of a table in one SVG: the model of
-- templates/reports/best_strategy.svg.tmpl. It has whole pixels and no gnuplot, so that the same rows give
-- the same bytes everywhere, and a changed choice changes one line.
local colours = require "pages.colours"
local geometry = require "pages.geometry"
local lists = require "lists.lists"
local rank_placement = require "lists.rank_placement"
local sequences = require "base.sequences"
local summary = require "formats.summary"

local overview = {}

local WIDTH, NARROWEST_PANEL, LARGEST_CELL, HIGHEST_CELL = 1240, 215, 30, 20
local MOST_VALUES = 40 -- of an axis; larger tables have no picture
local TITLE, LEFT, TICKS, GAP, EDGE = 26, 46, 20, 16, 12
local LETTER, MARK_LETTER = 6.2, 5.6

-- Neighbours in a row that have the same winner: { { first, last, name (nil: unmeasured) }... }
local function runs_of(row)
  local runs = {}
  for t, cell in ipairs(row) do
    local name, run = cell and cell.strategy, runs[#runs]
    if run and run.name == name then
      run.last = t
    else
      runs[#runs + 1] = { first = t, last = t, name = name }
    end
  end
  return runs
end

local function panel_of(block, fusion, x, y, width, height)
  local panel = { title = fusion.name, x = x, y = y, boxes = {}, marks = {}, uncertain = {}, derived = {} }
  local rows = #block.hidden_sizes
  for h, row in ipairs(fusion.rows) do
    local top = y + (rows - h) * height -- the largest hidden size on top
    for _, run in ipairs(runs_of(row)) do
      local left, wide = x + (run.first - 1) * width, (run.last - run.first + 1) * width
      local strategy = run.name and lists.find("strategies", run.name)
      panel.boxes[#panel.boxes + 1] = { x = left, y = top, width = wide, height = height,
        strategy = strategy }
      if strategy and wide >= MARK_LETTER * #strategy.mark + 3 then
        panel.marks[#panel.marks + 1] = { x = left + wide // 2, y = top + height // 2 + 3,
          text = strategy.mark, colour = colours.text_on(strategy.colour) }
      end
    end
    for t, cell in ipairs(row) do
      if cell and summary.is_uncertain(cell) then
        local size = math.min(7, width, height)
        panel.uncertain[#panel.uncertain + 1] = { x = x + t * width, y = top, size = size }
      end
      if cell and cell.derived then
        panel.derived[#panel.derived + 1] = { x = x + (t - 1) * width + 4, y = top + height - 4 }
      end
    end
  end
  return panel
end

-- The indices of `values` that have room for their texts, `cell` pixels apart.
local function ticks_of(values, cell, needed)
  local out, every = {}, math.max(1, math.ceil(needed / cell))
  for i = 1, #values, every do out[#out + 1] = { index = i, text = tostring(values[i]) } end
  return out
end

local function widest(values) return math.ceil(#tostring(values[#values]) * LETTER) + 6 end

-- A note in place of panels that would be too large.
local function row_of_words(tp_table, block, y)
  return { panels = {}, y_ticks = {}, x_ticks = {}, bottom = y, right = 0,
    words = { x = EDGE, y = y + TITLE - 6, text = ("%s: %d token counts x %d hidden sizes are too many " ..
      "for a picture here; gentables plot draws them."):format(
      rank_placement.words(tp_table.tp, tp_table.nodes), #block.num_tokens, #block.hidden_sizes) } }
end

local function name_of(tp_table, block)
  return ("%s%s%s"):format(rank_placement.words(tp_table.tp, tp_table.nodes),
    block.total.oversubscribed > 0 and "*" or "", block.total.predicted > 0 and " (predicted)" or "")
end

-- The width of the longest title of a panel, in pixels.
local function widest_title(tp_tables, blocks)
  return math.max(0, table.unpack(sequences.join(tp_tables, function(tp_table)
    local block = blocks[tp_table.block]
    return sequences.map(block.by_fusion, function(fusion)
      return math.ceil(#(name_of(tp_table, block) .. ", " .. fusion.name) * LETTER)
    end)
  end)))
end

-- One line of panels: the fusions of a TP size. title: the width of the longest one.
local function row_of(tp_table, block, y, columns, title)
  if math.max(#block.num_tokens, #block.hidden_sizes) > MOST_VALUES then
    return row_of_words(tp_table, block, y)
  end
  local room = (WIDTH - EDGE - columns * (LEFT + GAP)) // columns
  local width = math.min(LARGEST_CELL, room // #block.num_tokens)
  local height = HIGHEST_CELL
  local row = { panels = {}, y_ticks = {}, x_ticks = {} }
  row.name = name_of(tp_table, block)
  local step = LEFT + math.max(math.max(NARROWEST_PANEL, #block.num_tokens * width) + GAP, title + 4)
  for f, fusion in ipairs(block.by_fusion) do
    row.panels[f] = panel_of(block, fusion, EDGE + LEFT + (f - 1) * step, y + TITLE, width, height)
  end
  local rows = #block.hidden_sizes
  for i, tick in ipairs(ticks_of(block.hidden_sizes, height, 11)) do
    row.y_ticks[i] = { y = y + TITLE + (rows - tick.index) * height + height // 2 + 4, text = tick.text }
  end
  for i, tick in ipairs(ticks_of(block.num_tokens, width, widest(block.num_tokens))) do
    row.x_ticks[i] = { offset = (tick.index - 1) * width + width // 2, text = tick.text }
  end
  row.bottom = y + TITLE + rows * height
  row.right = EDGE + #block.by_fusion * step
  return row
end

-- The legend, { { text, strategy (nil: unmeasured), x, y }... }: the strategies that win in any cell, in the
-- list's order; and its height.
local function legend_of(tp_tables, blocks, width)
  local seen, legend, x, y = {}, {}, EDGE, 0
  for _, tp_table in ipairs(tp_tables) do
    for _, share in ipairs(blocks[tp_table.block].total.shares) do seen[share.name] = true end
    if blocks[tp_table.block].total.unmeasured > 0 then legend.unmeasured = true end
  end
  local entries = sequences.map(lists.strategies, function(strategy)
    local text = strategy.mark .. " " .. strategy.name
    return seen[strategy.name] and { strategy = strategy, text = text } or nil
  end)
  if legend.unmeasured then entries[#entries + 1] = { text = "unmeasured" } end
  for _, entry in ipairs(entries) do
    local wide = 24 + math.ceil(#entry.text * LETTER) + 20
    if x > EDGE and x + wide > width then x, y = EDGE, y + 18 end
    entry.x, entry.y = x, y
    x = x + wide
  end
  return entries, y + 18
end

-- The notes about the marks in the picture, a line each.
local function notes_of(tp_tables, blocks, width)
  local derived, oversubscribed
  for _, tp_table in ipairs(tp_tables) do
    local total = blocks[tp_table.block].total
    derived, oversubscribed = derived or total.derived > 0, oversubscribed or total.oversubscribed > 0
  end
  local notes = { "Tokens to the right, hidden size up. A white corner: uncertain (see report.md)." }
  if derived then notes[#notes + 1] = "A white dot: interpolated." end
  if oversubscribed then notes[#notes + 1] = "*: more ranks than cores." end
  for i, note in ipairs(notes) do notes[i] = geometry.shorten(note, 8.5, width / 72) end
  return notes
end

-- The picture for the template; `view`: of model.for_format.
function overview.model(view)
  local blocks = summary.blocks(view.canonical)
  local columns = math.max(1, table.unpack(sequences.map(view.all_tables, function(tp_table)
    return #blocks[tp_table.block].by_fusion
  end)))
  local picture, y, width = { rows = {} }, 40, 640
  local title = widest_title(view.all_tables, blocks)
  for i, tp_table in ipairs(view.all_tables) do
    local row = row_of(tp_table, blocks[tp_table.block], y, columns, title)
    picture.rows[i] = row
    y, width = row.bottom + TICKS + 12, math.max(width, row.right)
  end
  picture.title = ("Best strategy on %s: %s, %s, %s"):format(view.arch, view.axes.dtype, view.axes.op,
    view.axes.mode)
  local legend, height = legend_of(view.all_tables, blocks, width)
  picture.legend, picture.legend_y = legend, y + 6
  picture.notes = notes_of(view.all_tables, blocks, width)
  picture.notes_y, picture.note_line = y + height + 18, 13
  picture.width, picture.height = width, picture.notes_y + picture.note_line * #picture.notes - 1
  return picture
end

return overview
