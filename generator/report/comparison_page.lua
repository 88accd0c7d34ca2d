-- The page of gentables compare: a summary of changes, the sweeps, maps of every table side by side and as
-- differences, all numbers, and missing cells. sweep_comparison.lua has the numbers.
local colours = require "pages.colours"
local ordering = require "base.ordering"
local sweep_comparison = require "report.sweep_comparison"
local file = require "core.file"
local json = require "codec.json"
local machines = require "machine.machines"
local winner_tables = require "report.winner_tables"
local page = require "pages.page"
local provenance = require "rows.provenance"
local quantities = require "base.quantities"
local sequences = require "base.sequences"
local side_by_side = require "pages.side_by_side"
local summary = require "formats.summary"

local comparison_page = {}

-- Larger tables are small pictures only, and longer lists are cut; the page has a note for both.
local MOST_CELLS, MOST_ROWS = 2500, 1000

-- From much faster to much slower; distinct for colour-blind people.
local change_scale = { "#2166ac", "#67a9cf", "#d1e5f0", "#f7f7f7", "#fee0b6", "#f1a340", "#b35806" }
local change_steps = { 1 / 1.5, 1 / 1.1, 1 / 1.02, 1.02, 1.1, 1.5 } -- between two colours of the scale

local function change_class(ratio)
  local index = 1
  while change_steps[index] and ratio >= change_steps[index] do index = index + 1 end
  return "c" .. index
end

local function style()
  local out = { assert(file.read(gentables.home .. "/templates/reports/report.css")),
    assert(file.read(gentables.home .. "/templates/reports/comparison.css")) }
  for i, colour in ipairs(change_scale) do
    out[#out + 1] = (".c%d{background:%s;color:%s;fill:%s}"):format(i, colour, colours.text_on(colour),
      colour)
  end
  return table.concat(out, "\n")
end

local percent = side_by_side.signed_percent

-- A share as a cell of a table; nil without one.
local function share_cell(share) return share and { text = percent(share), value = share } end

-- A ratio of times as a cell of a table; nil without one.
local function change_cell(ratio) return side_by_side.change(ratio and 1, ratio, summary.least_margin) end

-- ---- the sweeps -------------------------------------------------------------------------------

-- A value of JSON as text; nil for nil.
local function text_of(value)
  if type(value) ~= "table" then return value ~= nil and tostring(value) or nil end
  local parts = {}
  for name, part in pairs(value) do
    parts[#parts + 1] = name .. " " .. (type(part) == "table" and json.compact(part) or tostring(part))
  end
  table.sort(parts)
  return table.concat(parts, ", ")
end

local titles = { cpu = "CPU", gpu = "GPU", cores = "Cores", topology = "Topology", caches = "Caches",
  memory_gib = "Memory, GiB", os = "System", mpi = "MPI", nccl = "NCCL", cuda = "CUDA", driver = "Driver" }

-- The facts in the provenance of any sweep: { name, group, title }, sorted.
local function facts_of(records)
  return sequences.join({ "machine", "bench" }, function(group)
    local facts = {}
    for _, record in pairs(records) do facts = sequences.merged(facts, record[group]) end
    return sequences.map(ordering.sorted_keys(facts), function(name)
      return { group = group, name = name,
        title = group == "machine" and titles[name] or (group .. ": " .. name) }
    end)
  end)
end

-- One row of facts; facts that differ from the base are marked.
local function fact_row(title, count, get)
  return side_by_side.row({ title }, count, function(s) return side_by_side.fact(get(s), get(1)) end)
end

local function add_sources(p, comparison, labels)
  local records, rows, count = {}, {}, #labels
  for s, sweep in ipairs(comparison.sweeps) do records[s] = provenance.first(sweep.source.files) end
  rows[1] = fact_row("Arch", count, function(s) return comparison.sweeps[s].source.arch end)
  rows[2] = fact_row("Measured", count, function(s) return records[s] and text_of(records[s].date) end)
  for _, fact in ipairs(facts_of(records)) do
    rows[#rows + 1] = fact_row(fact.title, count, function(s)
      local value = records[s] and records[s][fact.group][fact.name]
      return fact.name == "topology" and machines.topology_in_words(value) or text_of(value)
    end)
  end
  rows[#rows + 1] = fact_row("Rows", count, function(s)
    return tostring(#comparison.sweeps[s].source.rows)
  end)
  p:section("Sweeps", { id = "compared",
    note = "The first is the base; facts that differ from it are marked." })
  p:table { columns = { "", table.unpack(labels) }, rows = rows, plain = true }
  for s, label in ipairs(labels) do
    if not records[s] then
      p:missing(("machine and programs of %s: no provenance"):format(label))
    end
  end
end

-- ---- the summary of changes -------------------------------------------------------------------

local function sum_of(comparison, s)
  local total = { cells = 0, faster = 0, slower = 0, changed = 0, log_sum = 0, losses = 0, loss = 0,
    only_base = 0, only_other = 0 }
  for _, group in ipairs(comparison.groups) do
    for name in pairs(total) do total[name] = total[name] + group.against[s][name] end
  end
  return total
end

local function sentence(total, label, base)
  if total.cells == 0 then return ("%s and %s have no shape in common."):format(base, label) end
  local ratio = math.exp(total.log_sum / total.cells)
  local than = ("%.1f %% %s than"):format(100 * math.abs(ratio - 1), ratio < 1 and "shorter" or "longer")
  local out = { ("%s: the best times are %s those of %s (geometric mean over %s)."):format(label,
    than:find("^0%.0 ") and "as long as" or than, base, quantities.counted(total.cells, "shape")) }
  out[#out + 1] = ("Clearly faster: %d, clearly slower: %d."):format(total.faster, total.slower)
  out[#out + 1] = ("Another strategy is best in %d."):format(total.changed)
  if total.losses > 0 then
    out[#out + 1] = ("With the choices of %s it loses %.1f %% on average."):format(base,
      100 * total.loss / total.losses)
  end
  return table.concat(out, " ")
end

local function change_rows(comparison, s)
  local rows = {}
  for _, group in ipairs(comparison.groups) do
    local tally = group.against[s]
    if tally.cells > 0 then
      rows[#rows + 1] = { group.tp, group.fusion, group.words, tally.cells, change_cell(tally.ratio),
        tally.faster, tally.slower, tally.changed, share_cell(tally.mean_loss), share_cell(tally.most_loss) }
    end
  end
  return rows
end

local function add_changes(p, comparison, labels)
  p:section("Changes", { id = "changed", note = ("Clearly: the 95 %% intervals do not overlap, or, " ..
    "without intervals, the times differ by more than %.0f %%. Best: the strategy with the shortest time " ..
    "that was measured at the shape itself. Loss: how much longer the base's choices take here than " ..
    "the best."):format(100 * summary.least_margin) })
  for s = 2, #labels do
    if #labels > 2 then p:text(sentence(sum_of(comparison, s), labels[s], labels[1])) end
    local rows = change_rows(comparison, s)
    if #rows > 0 then
      p:table { caption = side_by_side.against(labels, s), rows = rows, columns = { "TP",
        "fusion", "data", "shapes", "best time", "clearly faster", "clearly slower", "other best",
        "loss of the base's choice", "at most" }, may_go = { "data" } }
    end
  end
end

local function add_strategies(p, comparison, labels)
  local function nothing() end
  local rows = {}
  local columns = side_by_side.row({ "strategy" }, #labels, nothing, function(s)
    return labels[s], "shapes"
  end)
  for i, strategy in ipairs(sweep_comparison.strategies(comparison)) do
    rows[i] = side_by_side.row({ strategy.name }, #labels, nothing, function(s)
      local ratio, count = sweep_comparison.strategy_ratio(comparison, s, strategy.name)
      return change_cell(ratio) or side_by_side.missing(), count
    end)
  end
  p:heading(("The times of each strategy against %s (geometric mean)"):format(labels[1]))
  p:table { columns = columns, rows = rows }
end

-- ---- maps -------------------------------------------------------------------------------------

-- A group of one sweep in the form of a fusion for winner_tables.lua.
local function fusion_of(group, s)
  local rows = {}
  for h, row in ipairs(group.cells) do
    rows[h] = {}
    for t, of in ipairs(row) do rows[h][t] = of[s] end
  end
  return { rows = rows }
end

-- The change of every cell as a small picture.
local function change_picture(group, s)
  local by_class, height = {}, #group.hidden_sizes
  for h, row in ipairs(group.against[s].at) do
    for t = 1, #group.num_tokens do
      if row[t] then
        table.insert(sequences.at(by_class, change_class(row[t].ratio)),
          ("M%d %dh1v1h-1z"):format(t - 1, height - h))
      end
    end
  end
  local out = { ('<svg viewBox="0 0 %d %d" preserveAspectRatio="none" role="img" aria-label="change">')
    :format(#group.num_tokens, height) }
  for i = 1, #change_scale do
    local path = by_class["c" .. i]
    if path then out[#out + 1] = ('<path class="c%d" d="%s"/>'):format(i, table.concat(path)) end
  end
  return table.concat(out) .. "</svg>"
end

local function change_table(group, s, caption)
  return winner_tables.table(group, "cells change", caption, function(h, t)
    local cell = group.against[s].at[h][t]
    if not cell then return '<td class="none">–' end
    return ('<td class="%s%s">%s'):format(change_class(cell.ratio), cell.changed and " differs" or "",
      percent(cell.ratio - 1, math.abs(cell.ratio - 1) < 0.0995 and 1 or 0))
  end)
end

-- A small picture of a group with the ends of its axes: hidden sizes at the left, the largest on top, and
-- tokens below; of rows by bytes only sizes.
local function with_axes(group, svg)
  local function ends(class, values, name, text_of_value)
    local texts = { text_of_value(values[1]), name, #values > 1 and text_of_value(values[#values]) or "" }
    if class == "up" then texts[1], texts[3] = texts[3], texts[1] end
    return ('<div class="%s"><span>%s</span></div>'):format(class, table.concat(texts, "</span><span>"))
  end
  local up = not group.sizes_only and ends("up", group.hidden_sizes, "hidden", tostring) or "<div></div>"
  local right = ends("right", group.num_tokens, group.sizes_only and "size" or "tokens",
    group.sizes_only and quantities.exact_bytes or tostring)
  return ('<div class="axes">%s%s%s</div>'):format(up, svg, right)
end

local function add_pictures(p, group, labels)
  local list = {}
  for s, label in ipairs(labels) do
    if group.missing[s] then
      list[s] = { title = label,
        missing = ("no rows of TP %s, %s, %s"):format(group.tp, group.fusion, group.words) }
    else
      local picture = winner_tables.small_picture(group, fusion_of(group, s))
      list[s] = { title = label, markup = with_axes(group, picture) }
    end
  end
  for s = 2, #labels do
    if group.against[s].cells > 0 then
      list[#list + 1] = { title = side_by_side.against(labels, s),
        markup = with_axes(group, change_picture(group, s)) }
    end
  end
  p:html('<div class="maps">'):figures(list):html("</div>")
end

local function add_tables(p, group, labels)
  if #group.hidden_sizes * #group.num_tokens > MOST_CELLS then
    p:note(("%d × %d shapes are too many for tables here."):format(#group.hidden_sizes, #group.num_tokens))
    return
  end
  p:html('<details><summary>With numbers</summary><div class="pair">\n')
  for s, label in ipairs(labels) do
    if not group.missing[s] then
      local markup = winner_tables.new_table(group, fusion_of(group, s), label)
      p:html('<div class="table">' .. markup .. "</div>\n")
    end
  end
  for s = 2, #labels do
    if group.against[s].cells > 0 then
      p:html('<div class="table">' .. change_table(group, s, side_by_side.against(labels, s)) .. "</div>\n")
    end
  end
  p:html("</div></details>\n")
end

-- The legend of the strategies that are chosen in any cell.
local function legend_of(comparison)
  local blocks = sequences.join(sequences.field(comparison.sweeps, "blocks"))
  local shares = sequences.join(blocks, function(block) return block.total.shares end)
  local wins = sequences.set(sequences.field(shares, "name"))
  local out = sequences.map(sweep_comparison.strategies(comparison), function(strategy)
    return wins[strategy.name] and winner_tables.key(strategy) or nil
  end)
  out[#out + 1] = '<li><span class="key none">–</span> unmeasured</li>'
  return '<ul class="legend">' .. table.concat(out) .. "</ul>\n"
end

local function change_legend()
  local words = { "below −33 %", "to −9 %", "to −2 %", "about the same", "from +2 %", "from +10 %",
    "from +50 %" }
  local out = sequences.map(words, function(text, i)
    return ('<li><span class="key c%d">&nbsp;</span> %s</li>'):format(i, text)
  end)
  return '<ul class="legend">' .. table.concat(out) .. "</ul>\n"
end

local function add_maps(p, comparison, labels)
  p:section("Maps", { id = "maps", note = "Tokens to the right, hidden size up. First the choices; a " ..
    "white corner marks an uncertain one. Then how the best times differ from the base: blue is faster, " ..
    "brown slower. In the tables a frame marks another best strategy than the base's." })
  p:html(legend_of(comparison)):html(change_legend())
  for _, group in ipairs(comparison.groups) do
    p:heading(("TP %s, %s, %s"):format(group.tp, group.fusion, group.words))
    add_pictures(p, group, labels)
    add_tables(p, group, labels)
  end
end

-- ---- numbers ----------------------------------------------------------------------------------

-- The row of a cell: its axes, then time and strategy of each sweep, then the changes.
local function number_row(group, h, t, count)
  local of, most = group.cells[h][t], 0
  local tokens, hidden = group.num_tokens[t], group.hidden_sizes[h]
  if group.sizes_only then tokens, hidden = { text = quantities.exact_bytes(tokens), value = tokens }, "" end
  local row = side_by_side.row({ group.tp, group.fusion, group.words, tokens, hidden }, count, function(s)
    if not of[s] then return nil, side_by_side.missing() end
    return of[s].time_us, side_by_side.fact(of[s].strategy, of[1] and of[1].strategy or of[s].strategy)
  end, function(s)
    local cell = group.against[s].at[h][t]
    if cell then most = math.max(most, math.abs(math.log(cell.ratio))) end
    return change_cell(cell and cell.ratio)
  end)
  return row, most
end

local function add_numbers(p, comparison, labels)
  local all, count = {}, #labels
  for _, group in ipairs(comparison.groups) do
    for h, cells in ipairs(group.cells) do
      for t, of in ipairs(cells) do
        local any = false
        for s = 1, count do any = any or of[s] end
        if any then
          local row, most = number_row(group, h, t, count)
          all[#all + 1] = { row = row, most = most }
        end
      end
    end
  end
  ordering.falling(all, function(entry) return entry.most end)
  local rows = {}
  for i = 1, math.min(MOST_ROWS, #all) do rows[i] = all[i].row end
  local columns = side_by_side.row({ "TP", "fusion", "data", "tokens or size", "hidden" }, count, function(s)
    return { title = labels[s] .. ", time of its choice (us)", format = "%.4f" }, labels[s] .. ", choice"
  end, function(s) return side_by_side.against(labels, s) end)
  p:section("Numbers", { id = "numbers", note = #all > #rows and
    ("The %d largest changes of %d shapes."):format(#rows, #all) or "All shapes, the largest change first." })
  p:table { columns = columns, rows = rows, may_go = { "data" } }
end

-- ---- missing cells ----------------------------------------------------------------------------

local function add_missing(p, comparison, labels)
  p:section("Missing", { id = "missing" })
  local any = false
  for _, group in ipairs(comparison.groups) do
    for s, label in ipairs(labels) do
      if group.missing[s] then
        any = true
        p:missing(("%s has no rows of TP %s, %s, %s"):format(label, group.tp, group.fusion, group.words))
      end
    end
  end
  for s = 2, #labels do
    local total = sum_of(comparison, s)
    local sides = { { total.only_base, labels[1], labels[s] }, { total.only_other, labels[s], labels[1] } }
    for _, side in ipairs(sides) do
      if side[1] > 0 then
        any = true
        p:text(("%s of %s missing in %s."):format(quantities.counted(side[1], "shape"), side[2], side[3]))
      end
    end
  end
  if not any then p:text("Nothing: all sweeps have the same shapes.") end
end

-- ---- the page ---------------------------------------------------------------------------------

local function lead_of(comparison, labels)
  local out = {}
  for s = 2, #labels do out[#out + 1] = sentence(sum_of(comparison, s), labels[s], labels[1]) end
  return table.concat(out, " ")
end

-- "AllReduce", or "Collectives" if a sweep has rows of another op.
local function collective_of(comparison)
  local others = sequences.any(comparison.groups, function(group) return group.key.op ~= "allreduce" end)
  return others and "Collectives" or "AllReduce"
end

-- The page (of pages/page.lua) of these sources (of model.load); the first is the base.
function comparison_page.page(sources, labels)
  local comparison = sweep_comparison.of(sources)
  local names = sequences.set(sequences.field(sweep_comparison.strategies(comparison), "name"))
  local title = ("%s: %s%s"):format(collective_of(comparison), table.concat(labels, " against ", 1, 2),
    #labels > 2 and (" and %d more"):format(#labels - 2) or "")
  local p = page.new(title, { lead = #labels == 2 and lead_of(comparison, labels) or
    ("%d sweeps; the first, %s, is the base."):format(#labels, labels[1]),
    style = style() .. "\n" .. winner_tables.style(names) })
  add_changes(p, comparison, labels)
  add_strategies(p, comparison, labels)
  add_sources(p, comparison, labels)
  add_maps(p, comparison, labels)
  add_numbers(p, comparison, labels)
  add_missing(p, comparison, labels)
  return p
end

return comparison_page
