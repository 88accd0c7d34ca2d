-- report.html: the best strategies, one table with all its times, a lookup of shapes, the confidence of
-- choices, all numbers, the machine. report_html.page(sources) returns a page (pages/page.lua).
local colours = require "pages.colours"
local ordering = require "base.ordering"
local report_data = require "report.report_data"
local file = require "core.file"
local formats = require "formats.list"
local gaps = require "formats.gaps"
local predicted_in_words = require "formats.predicted_in_words"
local sequences = require "base.sequences"
local winner_tables = require "report.winner_tables"
local lists = require "lists.lists"
local model = require "formats.model"
local page = require "pages.page"
local machines = require "machine.machines"
local provenance = require "rows.provenance"
local quantities = require "base.quantities"
local rank_placement = require "lists.rank_placement"
local choice_cost = require "formats.choice_cost"
local summary = require "formats.summary"
local template = require "codec.template"

local report_html = {}

local MOST_NAMED = 4 -- strategies in the first sentence

local MOST_UNCERTAIN = 20 -- uncertain choices that are listed

local size_of_ranks = rank_placement.size_of

local function percent(share, digits)
  if not share then return nil end
  return quantities.fixed(100 * share, digits or 1) .. " %"
end

local function own_file(name) return gentables.home .. "/templates/reports/" .. name end

-- The scripts of the page, in the order in which they run.
local SCRIPTS = { "report_data.js", "report_views.js", "report_details.js", "report_lookup.js",
  "report_list.js", "report.js" }

local function own_script()
  local texts = sequences.map(SCRIPTS, function(name) return assert(file.read(own_file(name))) end)
  return table.concat(texts, "\n")
end

-- ---- one arch ---------------------------------------------------------------------------------

-- The view of a source (of model.load) for all parts of the page.
local function view_of(source)
  local canonical = model.for_format(source, formats.find "table").canonical
  local blocks = summary.blocks(canonical)
  for _, block in ipairs(blocks) do
    for _, fusion in ipairs(block.by_fusion) do
      if source.incumbent then fusion.old = winner_tables.old_choices(block, fusion, source.incumbent) end
    end
  end
  return { source = source, arch = source.arch, blocks = blocks, data = report_data.of(source, blocks) }
end

local words_of = summary.words_of

-- Whether any block, or with `all` every block, is by bytes, without tokens and hidden sizes.
function report_html.go_by_bytes(views, all)
  for _, view in ipairs(views) do
    for _, block in ipairs(view.blocks) do
      if (block.sizes_only or false) ~= (all or false) then return not all end
    end
  end
  return all or false
end

-- The rows of the overview: one for each TP size and data type, with the fusions that it has.
local function overview_of(view, fusions)
  local several = #sequences.distinct(sequences.map(view.blocks, words_of)) > 1
  return sequences.map(view.blocks, function(block)
    local pictures = sequences.map(fusions, function(name)
      local fusion = sequences.named(block.by_fusion, name)
      return fusion and fusion.tally.unmeasured < fusion.tally.cells and { tally = fusion.tally,
        id = report_data.id(view.arch, block, name), svg = winner_tables.small_picture(block, fusion),
      } or false
    end)
    local tp = size_of_ranks(block) .. (block.total.predicted > 0 and ", predicted" or "")
    return { tp = tp, words = several and words_of(block) or "", pictures = pictures }
  end)
end

-- The fusions of the spec and of any block, in the list's order.
local function fusions_of(view)
  local spec = view.source.spec
  return sequences.filter(lists.names "fusions", function(name)
    return spec and spec.fusions and lists.contains(spec.fusions, name)
      or sequences.any(view.blocks, function(block) return lists.contains(block.fusions, name) end)
  end)
end

local function title_of(view, block, fusion)
  local of = block.sizes_only and "" or fusion.name .. ", "
  local words = ("%s, TP %s, %s%s"):format(view.arch, size_of_ranks(block), of, words_of(block))
  if block.total.oversubscribed > 0 then words = words .. "; more ranks than cores" end
  if block.total.predicted > 0 then words = words .. "; predicted from fewer nodes" end
  return words
end

-- The static tables of an arch: { id, title, new, old } for each fusion of each block.
local function tables_of(view)
  local out = {}
  for _, block in ipairs(view.blocks) do
    for _, fusion in ipairs(block.by_fusion) do
      local title = title_of(view, block, fusion)
      local old = fusion.old
      out[#out + 1] = { id = report_data.id(view.arch, block, fusion.name), title = title,
        empty = fusion.tally.unmeasured == fusion.tally.cells,
        sizes = block.sizes_only and winner_tables.size_table(block, fusion),
        new = winner_tables.new_table(block, fusion, old and "new" or "", old),
        old = old and winner_tables.old_table(block, fusion, "incumbent", old) }
    end
  end
  return out
end

-- The strategies with a time, or in a table: name -> true.
local function shown_names(views)
  local names = {}
  local strategies = report_data.strategies(report_html.archs(views))
  for _, strategy in pairs(strategies) do names[strategy.name] = true end
  return names
end

-- The strategies that win in any cell: { strategy = row of lists.strategies, cells = their number }, most
-- first.
local function legend_of(views)
  local wins = {}
  for _, block in ipairs(sequences.join(sequences.field(views, "blocks"))) do
    for _, won in ipairs(block.total.shares) do wins[won.name] = (wins[won.name] or 0) + won.count end
  end
  local out = sequences.map(lists.strategies, function(strategy)
    local name = strategy.name
    return wins[name] and { strategy = strategy, name = name, cells = wins[name] } or nil
  end)
  return ordering.sort(out, ordering.by("-cells", "name"))
end

-- ---- confidence -------------------------------------------------------------------------------

local function bound_in_words(tally)
  if not tally.bound then return nil end
  return { text = ("%s (%s to %s)"):format(percent(tally.bound, 0), percent(tally.least_bound, 0),
    percent(tally.most_bound, 0)), value = tally.bound }
end

local function share(value, digits)
  return value and { text = percent(value, digits), value = value } or nil
end

local function sure_rows(views)
  local rows = {}
  for _, view in ipairs(views) do
    for _, block in ipairs(view.blocks) do
      for _, fusion in ipairs(block.by_fusion) do
        local tally = fusion.tally
        rows[#rows + 1] = { view.arch, size_of_ranks(block), fusion.name, words_of(block), tally.cells,
          tally.unmeasured, tally.certain, tally.tie, tally.uncertain, share(tally.margin),
          share(tally.least_margin), share(tally.expected_loss, 2), share(tally.worst_loss),
          bound_in_words(tally) }
      end
    end
  end
  return rows
end

-- The size of a block by bytes as a cell; nil for blocks with tokens.
local function size_of(block, t)
  local bytes = block.num_tokens[t]
  return block.sizes_only and { text = quantities.exact_bytes(bytes), value = bytes } or nil
end

-- The columns that are left out if all rows have the same: tokens and hidden size if all blocks are by bytes,
-- the size if none is.
local function may_go(views)
  local out = { "arch", "data" }
  if report_html.go_by_bytes(views, true) then
    table.move({ "fusion", "tokens", "hidden" }, 1, 3, #out + 1, out)
  end
  if not report_html.go_by_bytes(views) then out[#out + 1] = "size" end
  return out
end

-- The uncertain choices, the least confident first: the first MOST_UNCERTAIN of them, and the number of all.
local function most_uncertain(views)
  local all = {}
  for _, view in ipairs(views) do
    for _, block in ipairs(view.blocks) do
      for _, fusion in ipairs(block.by_fusion) do
        for h, row in ipairs(fusion.rows) do
          for t, cell in ipairs(row) do
            if cell and summary.is_uncertain(cell) then
              all[#all + 1] = { sure = cell.confidence or 0.5, margin = cell.margin or 0, order = #all,
                row = { view.arch, size_of_ranks(block), fusion.name, words_of(block), size_of(block, t),
                  not block.sizes_only and block.num_tokens[t] or nil,
                  not block.sizes_only and block.hidden_sizes[h] or nil, cell.strategy, cell.runner_up,
                  share(cell.margin, 2),
                  share(cell.confidence), share(cell.expected_loss, 2), share(cell.worst_loss) } }
            end
          end
        end
      end
    end
  end
  table.sort(all, ordering.by("sure", "margin", "order"))
  local rows = {}
  for i = 1, math.min(MOST_UNCERTAIN, #all) do rows[i] = all[i].row end
  return rows, #all
end

local function add_confidence(p, views)
  p:section("Confidence", { id = "sure", note = "Margin: how much more the runner-up loses. Confidence: " ..
    "the probability that a choice loses at most 2 % over the shapes that the lookup sends to its cell. " ..
    "Expected loss: the mean of that loss; worst loss: its 95 % quantile. Bound: the share of " ..
    "the choice's time that memory and links need at least." })
  p:table { columns = { "arch", "TP", "fusion", "data", "cells", "unmeasured", "certain", "ties",
    "uncertain", "margin, median", "margin, least", "expected loss", "worst loss", "bound, median (range)" },
    rows = sure_rows(views), may_go = may_go(views) }
  local rows, count = most_uncertain(views)
  if count == 0 then
    p:text("No choice is uncertain.")
  else
    p:heading(count > #rows and ("The %d least confident of %d uncertain choices"):format(#rows, count)
      or quantities.counted(count, "uncertain choice"))
    p:table { columns = { "arch", "TP", "fusion", "data", "size", "tokens", "hidden", "choice", "runner-up",
      "margin", "confidence", "expected loss", "worst loss" }, rows = rows, may_go = may_go(views) }
  end
end

-- ---- numerics ---------------------------------------------------------------------------------

-- The cost of stable numerics.
local function add_stable_cost(p, view)
  local costs, total = choice_cost.of_stable(view.source)
  local rows = sequences.map(costs, function(sums)
    return { size_of_ranks(sums.slice), sums.fusion, words_of(sums.slice), sums.cells, sums.other,
      share(sums.cost, 2), summary.most_in_words(sums) }
  end)
  p:text(summary.stable_cost_in_words(total))
  p:table { columns = { "TP", "fusion", "data", "cells", "other choice", "cost, mean", "at most" },
    rows = rows, may_go = { "data" } }
end

local function add_numerics(p, views)
  p:section("Numerics", { id = "numerics", note = "Strategies with results of equal bits are a class. " ..
    "Cost: how much longer the best of a class takes than the best of all, over the shapes for which it " ..
    "has a time. --numerics same-as=NAME has this cost; --numerics any has none." })
  local rows, unknown_bits = {}, {}
  for _, view in ipairs(views) do
    local classes, unknown = summary.numerics(view.source)
    for _, class in ipairs(classes) do
      rows[#rows + 1] = { view.arch, size_of_ranks(class.slice), class.slice.fusion, words_of(class.slice),
        table.concat(class.names, ", "), class.shapes, class.of, share(class.cost, 2), share(class.worst, 2) }
    end
    for _, entry in ipairs(unknown) do
      table.insert(unknown_bits, { view.arch, size_of_ranks(entry.slice), entry.slice.fusion,
        table.concat(entry.names, ", "), entry.varies and "not the same each time" or "unknown" })
    end
    if view.source.same_bits_as or view.source.stable then
      p:text(("%s: %s"):format(view.arch, summary.restriction(view.source)))
    end
    if view.source.stable then add_stable_cost(p, view) end
  end
  if #rows == 0 and #unknown_bits == 0 then
    p:text("These rows have no bits; rows of gentables sweep have them.")
  else
    p:table { columns = { "arch", "TP", "fusion", "data", "class", "shapes", "of", "cost, mean",
      "cost, at worst" }, rows = rows, may_go = { "arch", "data" } }
  end
  if #unknown_bits > 0 then
    p:table { columns = { "arch", "TP", "fusion", "strategies without a class", "their bits" },
      rows = unknown_bits, may_go = { "arch" } }
  end
end

-- ---- machine, and cells that formats leave out ------------------------------------------------

local function add_machine(p, views)
  p:section("Machine", { id = "machine" })
  for _, view in ipairs(views) do
    if #views > 1 then p:heading(view.arch) end
    local record = provenance.first(view.source.files)
    if record then
      local machine, bench = record.machine, record.bench
      p:facts { { "CPU", machine.cpu }, { "GPU", machine.gpu }, { "Cores", machine.cores },
        { "Topology", machines.topology_in_words(machine.topology) },
        { "Caches", summary.caches_in_words(machine.caches) }, { "Memory, GiB", machine.memory_gib },
        { "System", machine.os }, { "MPI", machine.mpi },
        { "Network of the nodes", summary.network(view.source.files) },
        { "Largest error of sums in the switch", summary.largest_switch_error(view.source.files) },
        { "Bench", bench.compiler and ("%s, %s"):format(bench.compiler, tostring(bench.isa)) } }
    else
      p:text("Unknown: the rows have no provenance beside them, for example because another tool wrote them.")
    end
  end
end

local function add_missing(p, views)
  p:section("Left out", { id = "left-out" })
  for _, view in ipairs(views) do
    local rows, unmeasured = {}, 0
    for i, group in ipairs(summary.without_time(view.source)) do
      rows[i] = { view.arch, group.tp, group.cells, table.concat(group.strategies, ", "), group.reason }
    end
    for _, block in ipairs(view.blocks) do unmeasured = unmeasured + block.total.unmeasured end
    if #rows > 0 then
      p:table { columns = { "arch", "TP", "cells × strategies", "strategies", "reason" }, rows = rows,
        may_go = #views == 1 and { "arch" } or {} }
    elseif unmeasured > 0 then
      p:text(("%s of %s without any time; the rows have no provenance with the reasons."):format(
        quantities.counted(unmeasured, "cell"), view.arch))
    else
      p:text(("Every cell of the spec of %s has a time."):format(view.arch))
    end
    local lines = {}
    for _, entry in ipairs(summary.formats(view.source)) do
      for _, line in ipairs(entry.lines) do lines[#lines + 1] = { entry.format.file, line } end
    end
    if #lines > 0 then p:table { columns = { "file", "leaves out" }, rows = lines } end
    local elsewhere = sequences.map(summary.elsewhere(view.source), function(entry)
      return { entry.format.file, entry.text }
    end)
    p:table { columns = { "file", "unmeasured shapes" }, rows = elsewhere, plain = true }
  end
end

-- ---- the page ---------------------------------------------------------------------------------

local function title_of_page(views)
  local blocks = sequences.join(sequences.field(views, "blocks"))
  local others = sequences.any(blocks, function(block) return block.sizes_only or block.op ~= "allreduce" end)
  local names = table.concat(sequences.field(views, "arch"), ", ")
  return (others and "Collectives on " or "AllReduce on ") .. names
end

-- The strategies that are best most often, as a sentence; `what`: sizes or shapes.
local function best_in_words(views, total, what)
  local parts = sequences.map(legend_of(views), function(entry, i)
    return ("%s in %d%s"):format(entry.name, entry.cells,
      i == 1 and (" of %d %s"):format(total.cells - total.unmeasured, what) or "")
  end)
  local more = #parts - MOST_NAMED
  local words = table.concat(parts, ", ", 1, math.min(#parts, MOST_NAMED))
  return #parts > 0 and ("Best: %s%s."):format(words, more > 0 and (", %d more"):format(more) or "") or nil
end

-- The summary at the top of the page, one paragraph per line: the answer, how sure it is, and the rest.
local function lead_of(views)
  local blocks = sequences.join(sequences.field(views, "blocks"))
  local files = sequences.join(views, function(view) return view.source.files end)
  local total = summary.totals(blocks)
  local what = report_html.go_by_bytes(views, true) and "sizes" or "shapes"
  local out = { best_in_words(views, total, what) }
  out[#out + 1] = summary.sureness(files, blocks)
  out[#out + 1] = ("%s. %s"):format(summary.measured_in_words(total, what),
    summary.rule(views[1].source, what))
  out[#out + 1] = ("Uncertain: %s."):format(summary.uncertain_in_words(total.with_loss > 0))
  if total.oversubscribed > 0 then
    out[#out + 1] = ("%s with more ranks than cores: these times hold for this machine only."):format(
      quantities.counted(total.oversubscribed, what:sub(1, -2)))
  end
  for _, view in ipairs(views) do
    local found = view.source.gaps
    if found then out[#out + 1] = ("%s: %s."):format(view.arch, gaps.words(found)) end
    out[#out + 1] = summary.ended_by_budget(view.source)
    local predicted = predicted_in_words.lines(view.source)
    table.move(predicted, 1, #predicted, #out + 1, out)
  end
  local workload = #views == 1 and summary.workload(views[1].source)
  if workload then out[#out + 1] = workload end
  local record = #views == 1 and provenance.first(views[1].source.files)
  if record then out[#out + 1] = ("Measured on %s."):format(machines.describe(record.machine)) end
  return table.concat(out, "\n")
end

-- The data of each view for the page's scripts.
function report_html.archs(views)
  return sequences.field(views, "data")
end

-- Whether any table has shapes that can be looked up.
local function has_shapes(views)
  return sequences.any(views, function(view) return view.data.header or view.data.trtllm end)
    or not report_html.go_by_bytes(views, true)
end

-- The page (of pages/page.lua) of these sources (of model.load; `incumbent`: a core.table, or nil).
function report_html.page(sources)
  local views = sequences.map(sources, view_of)
  local names = shown_names(views)
  local p = page.new(title_of_page(views), { lead = lead_of(views),
    style = assert(file.read(own_file "report.css")) .. winner_tables.style(names),
    script = own_script() })
  local parts = template.load(own_file "report.html.tmpl")
  local model_of_parts = { views = views, legend = legend_of(views), escape = page.escape, data = report_data,
    by_bytes = report_html.go_by_bytes(views, true), overview_of = overview_of, fusions_of = fusions_of,
    tables_of = tables_of, percent = percent }
  local parts_of_page = { { "winners", "Best strategies" }, { "choice", "One table" },
    has_shapes(views) and { "lookup", "Look up a shape", class = "js-only" } or nil }
  for _, part in ipairs(parts_of_page) do
    p:section(part[2], { id = part[1], class = part.class })
    model_of_parts.part = part[1]
    p:html(parts(model_of_parts))
  end
  add_confidence(p, views)
  p:section("All numbers", { id = "numbers", class = "js-only" })
  model_of_parts.part = "numbers"
  p:html(parts(model_of_parts))
  add_numerics(p, views)
  add_machine(p, views)
  add_missing(p, views)
  local archs = report_html.archs(views)
  p:data("data", { archs = archs, strategies = report_data.strategies(archs),
    scales = { time = colours.time, loss = colours.loss, certainty = colours.certainty,
      sequence = colours.sequence } })
  return p
end

return report_html
