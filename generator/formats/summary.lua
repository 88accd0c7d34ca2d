-- The numbers of a report: shares of the strategies, margins, uncertain choices, the physical bound, and the
-- reasons for missing times. The template has the texts.
local ordering = require "base.ordering"
local sequences = require "base.sequences"
local settings = require "choose.settings"
local choice_cost = require "base.lazy" "formats.choice_cost"
local choices = require "core.choose"
local formats = require "formats.list"
local model = require "formats.model"
local provenance = require "rows.provenance"
local quantities = require "base.quantities"
local rank_placement = require "lists.rank_placement"

local summary = {}

-- The least margin of a certain choice if rows have no launches.
summary.least_margin = choices.rule.margin

function summary.is_uncertain(cell) return cell.state == "uncertain" end

-- The definition of an uncertain choice, as text; `has_confidence`: whether rows have launches.
function summary.uncertain_in_words(has_confidence)
  local rule = choices.rule
  if not has_confidence then
    return ("a margin below %.0f %%, as rows have no launches"):format(100 * rule.margin)
  end
  return ("less than %.0f %% likely to lose at most %.0f %%, or an expected loss above %.0f %%"):format(
    100 * rule.confidence, 100 * rule.right, 100 * rule.expected_loss)
end

-- The rule by which the tables of a source are chosen, in a sentence; `what`: shapes (nil) or sizes.
function summary.rule(source, what)
  local more = ("%g %%"):format(100 * math.max(source.regret or 0, choices.rule.tolerance))
  if source.corner then
    return "A choice has the shortest time at the cell's own " .. (what or "shapes"):sub(1, -2)
      .. ", or loses at most " .. more .. " for fewer borders."
  end
  return "A choice has the least expected loss over all " .. (what or "shapes") ..
    " that a lookup sends to its cell, or loses at most " .. more .. " more for fewer borders."
end

-- A block of a table as text: data type, operation with its splits and, if rows have one, mode.
function summary.words_of(block)
  local has_splits = block.splits and block.splits ~= ""
  return block.dtype .. " " .. block.op .. (has_splits and " " .. block.splits or "")
    .. (block.sizes_only and " by bytes" or "") .. (block.mode == "unknown" and "" or " " .. block.mode)
end

-- The numbers of a tally (of table:tally) that add up.
summary.COUNTS = { "cells", "unmeasured", "derived", "predicted", "certain", "tie", "uncertain",
  "oversubscribed", "loss", "with_loss" }

-- A tally with `shares`, the strategies with the number of cells that each wins, most first; and
-- `expected_loss`, the mean.
local function with_shares(tally)
  tally.shares = {}
  for name, count in pairs(tally.wins) do tally.shares[#tally.shares + 1] = { name = name, count = count } end
  ordering.sort(tally.shares, ordering.by("-count", "name"))
  tally.expected_loss = tally.with_loss > 0 and tally.loss / tally.with_loss or nil
  return tally
end

local function rows_of(canonical, b, f, block)
  local rows = {}
  for h = 1, #block.hidden_sizes do
    local row = {}
    for t = 1, #block.num_tokens do row[t] = canonical:cell(b, f, h, t) or false end
    rows[h] = row
  end
  return rows
end

-- A fusion's rows are made when they are first asked for: reports of large tables have none.
local function fusion_of(canonical, b, f, block)
  local fusion = { name = block.fusions[f], tally = with_shares(canonical:tally(b, f)) }
  return setmetatable(fusion, { __index = function(_, key)
    if key ~= "rows" then return nil end
    fusion.rows = rows_of(canonical, b, f, block)
    return fusion.rows
  end })
end

local function blocks_of(canonical)
  local blocks = canonical:blocks()
  for b, block in ipairs(blocks) do
    block.total, block.by_fusion = with_shares(canonical:tally(b)), {}
    for f = 1, #block.fusions do block.by_fusion[f] = fusion_of(canonical, b, f, block) end
  end
  return blocks
end

local blocks_made = setmetatable({}, { __mode = "k" }) -- by table: picture and report show the same

-- The blocks of a table (core.table), each with `total`, a tally, and by_fusion = { { name, rows =
-- [hidden][tokens], a cell or false, tally }... }.
function summary.blocks(canonical)
  blocks_made[canonical] = blocks_made[canonical] or blocks_of(canonical)
  return blocks_made[canonical]
end

-- The sums of the tallies of all blocks.
function summary.totals(blocks)
  local total = {}
  for _, name in ipairs(summary.COUNTS) do
    total[name] = 0
    for _, block in ipairs(blocks) do total[name] = total[name] + block.total[name] end
  end
  return total
end

-- How many cells were measured, interpolated and predicted, from summary.totals; `what`: cells, shapes, ...
function summary.measured_in_words(total, what)
  local measured = total.cells - total.unmeasured - total.derived - total.predicted
  return ("%d of %d %s were measured%s%s"):format(measured, total.cells, what,
    total.derived > 0 and (", %d interpolated"):format(total.derived) or "",
    total.predicted > 0 and (", %d predicted from fewer nodes"):format(total.predicted) or "")
end

local function placement_of(of) return rank_placement.words(of.world_size, of.nodes) end

-- The choice with the largest worst loss in time, as text: "12.30 us at TP 2, ..."; nil without launches.
local function worst_in_words(blocks)
  local worst, of
  for _, block in ipairs(blocks) do
    local found = block.total.worst
    if found and (not worst or found.us > worst.us) then worst, of = found, block end
  end
  if not worst then return nil end
  local tokens, hidden_size = of.num_tokens[worst.tokens], of.hidden_sizes[worst.hidden]
  return ("%.2f us at %s, %s, %s"):format(worst.us, placement_of(of), of.fusions[worst.fusion],
    of.sizes_only and quantities.exact_bytes(tokens) or ("%d x %d"):format(tokens, hidden_size))
end

-- The expected gain of `sweep --refine`, as the end of a line; "" if there is none, or if no budget ended the
-- sweep.
local function refinement_in_words(files, uncertain)
  local records = sequences.field(files, "provenance")
  local sum = provenance.refinement(records)
  local words = sum and provenance.refinement_words(sum, uncertain, "them")
  return words and "; " .. words or ""
end

-- The confidence of the choices of all blocks, as a line; `files`: those of their sources.
function summary.sureness(files, blocks)
  local total = summary.totals(blocks)
  local line = ("%d certain, %s, %d uncertain"):format(total.certain, quantities.counted(total.tie, "tie"),
    total.uncertain)
  if total.with_loss > 0 then
    line = ("%s; expected loss %.2f %%; at worst %s"):format(line, 100 * total.loss / total.with_loss,
      worst_in_words(blocks))
  end
  return line .. refinement_in_words(files, total.uncertain) .. "."
end

-- A short name for each of these strategies (rows of lists.strategies): the first word, and the initials of
-- the others, if that is unique.
function summary.short_names(strategies)
  local short, taken = {}, {}
  for _, strategy in ipairs(strategies) do
    local name = strategy.name
    local first, others = name:match("^([^_]*)_(.*)$")
    if #name > 8 and first then name = first .. "-" .. others:gsub("(%a)%a*_?", "%1") end
    if taken[name] then name = strategy.name end
    taken[name] = true
    short[strategy.name] = name
  end
  return short
end

-- The strategies of a source without a time, by placement and reason: { { tp, reason, strategies = { names },
-- cells = the number of missing times } ... } in the order of files; then placements without rows; `tp`: of
-- rank_placement.size.
function summary.without_time(source)
  local groups, known = {}, {}
  for _, entry in ipairs(sequences.join { source.files, source.refused or {} }) do
    for _, cell in ipairs(entry.provenance and entry.provenance.no_time or {}) do
      local size = rank_placement.size(entry.tp, entry.nodes)
      local group = sequences.entry(groups, known, size .. "\0" .. cell.reason, function()
        return { tp = size, reason = cell.reason, strategies = {}, cells = 0 }
      end)
      group.cells = group.cells + 1
      table.insert(group.strategies, cell.strategy)
    end
  end
  for _, group in ipairs(groups) do group.strategies = sequences.distinct(group.strategies) end
  return groups
end

-- The caches of a machine as text; nil: unknown.
function summary.caches_in_words(caches)
  local names = caches and ordering.sorted_keys(caches)
  return names and table.concat(sequences.map(names, function(name)
    return name .. " " .. tostring(caches[name])
  end), ", ")
end

-- The disturbed rows of a source, the widest interval first: { tp (of rank_placement.size), entry = a mark of
-- the provenance } ...
function summary.disturbed(source)
  local found = {}
  for _, of in ipairs(source.files) do
    for _, entry in ipairs(of.provenance and of.provenance.disturbed or {}) do
      found[#found + 1] = { tp = rank_placement.size(of.tp, of.nodes), entry = entry }
    end
  end
  return ordering.falling(found, function(of) return of.entry.high_us / math.max(of.entry.low_us, 1e-9) end)
end

-- The place where a restriction of choices costs the most time, from sums of formats.choice_cost; "" if it
-- costs nothing.
function summary.most_in_words(sums)
  if not sums.place then return "" end
  return ("%.2f us (%.1f %%) at hidden size %d, %s"):format(sums.most_us, 100 * sums.most,
    sums.place.hidden_size, quantities.counted(sums.place.num_tokens, "token"))
end

-- The same with TP size and fusion, and the mean cost.
local function cost_in_words(total)
  local where = total.place and ("%s of %s, %s"):format(summary.most_in_words(total),
    placement_of(total.place), total.place.fusion) or "nothing"
  local words = "mean cost over all cells%s: %.2f %%; at most %s"
  if total.unknown == 0 then return words:format("", 100 * total.cost, where) end
  words = words .. "; in %s its choice has no time at the cell's own shape, so the cost is unknown"
  return words:format(" with a known one", 100 * total.cost, where,
    quantities.counted(total.unknown, "cell"))
end

-- The cost of strategies that the format of a view cannot name, as a line; nil: none is the best in a cell.
local function cost_of_names(view)
  local _, total = choice_cost.of_names(view)
  if total.other + total.without == 0 then return nil end
  local words = ("in %d of %s it has no name for the best strategy, and has the best that it can name; %s")
    :format(total.other, quantities.counted(total.cells, "cell"), cost_in_words(total))
  if total.without == 0 then return words end
  return ("%s; %s no choice, as no strategy that it can name has a time"):format(words,
    total.without == 1 and "1 more has" or total.without .. " more have")
end

local function axes_of(view) return { view.axes.dtype, view.axes.op, view.axes.mode } end

-- The parts that a format with this view (of model.for_format) leaves out, as lines.
local function left_out(view)
  local lines, format = {}, view.format
  local left = view.canonical:left_out()
  if left.loopback > 0 then
    lines[#lines + 1] = quantities.counted(left.loopback, "loopback row")
      .. ": several ranks on one GPU, unreal links"
  end
  for _, strategy in ipairs(view.lists.strategies) do
    local count = left.strategies[strategy.name]
    if count then
      local why = strategy.candidate == false and "never a winner" or "it has no name for it"
      lines[#lines + 1] = ("%s of %s: %s"):format(quantities.counted(count, "row"), strategy.name, why)
    end
  end
  if format.plane then
    local tables = sequences.join { format.one_node and view.tp_tables or view.all_tables,
      format.by_bytes and view.by_bytes or {} }
    local has_block = sequences.set(sequences.field(tables, "block"))
    if not next(has_block) then return { "everything: no row is of " .. table.concat(axes_of(view), " ") } end
    for index, block in ipairs(view.canonical:blocks()) do
      if not has_block[index] then
        local only = format.one_node and block.nodes > 1 and "one node" or table.concat(axes_of(view), " ")
        lines[#lines + 1] = ("%s %s%s: it has only %s"):format(placement_of(block), summary.words_of(block),
          block.mode == "unknown" and " unknown" or "", only)
      end
    end
  end
  if format.names then lines[#lines + 1] = cost_of_names(view) end
  return sequences.append(lines, format.left_out and format.left_out(view) or {})
end

-- The formats that are made of a source, in the list's order.
local function made_formats(source)
  return sequences.filter(formats.list, function(format)
    return formats.is_for(format, source.arch_row) and not (format.lacks and format.lacks(source))
  end)
end

-- Every format of the arch of `source` (of model.load), except the report: { format, lines = the parts that
-- it leaves out }.
function summary.formats(source)
  local out = {}
  for _, format in ipairs(made_formats(source)) do
    if format.name ~= "report" then
      local lines = not format.view and left_out(model.for_format(source, format))
        or format.left_out and format.left_out() or {}
      if format.gaps then lines = sequences.join { lines, format.gaps(source) } end
      local counts = model.node_counts(source)
      if format.per_nodes and rank_placement.spans(counts[#counts]) then
        lines = { format.per_nodes, table.unpack(lines) }
      end
      out[#out + 1] = { format = format, lines = lines }
    end
  end
  return out
end

-- What readers do at unmeasured cells: { { format, text } ... } of the formats that are made.
function summary.elsewhere(source)
  local out = {}
  for _, format in ipairs(made_formats(source)) do
    if format.elsewhere then
      local text = format.elsewhere:gsub("{fallback}", model.fallback(source, format))
      if source.same_bits_as and formats.may_leave_bits(format) and format.name ~= "table" then
        text = ("%s; these choices may have other bits than %s"):format(text, source.same_bits_as)
      end
      out[#out + 1] = { format = format, text = text }
    end
  end
  return out
end

-- The classes of equal bits of a source's rows, and the cost of keeping to one: { { slice, names, shapes, of
-- = shapes in all, cost, worst = shares of time } ... }, and { { slice, names } ... } of strategies with
-- unknown bits beside known ones; with `varies`, of strategies with bits that differ from run to run.
function summary.numerics(source)
  local classes, unknown = {}, {}
  if not source.rows:has_bits() then return classes, unknown end
  for _, slice in ipairs(source.rows:slices()) do
    local found, shapes, without_bits, varying = choices.classes(source.rows, slice,
      { loopback = source.loopback, first = source.same_bits_as })
    for _, class in ipairs(found) do
      class.slice, class.of = slice, shapes
      classes[#classes + 1] = class
    end
    if #found > 0 and #without_bits > 0 then
      unknown[#unknown + 1] = { slice = slice, names = without_bits }
    end
    if #varying > 0 then unknown[#unknown + 1] = { slice = slice, names = varying, varies = true } end
  end
  return classes, unknown
end

-- Which sweeps of a source's rows were ended by their budget, and how to continue them, as text; nil: none.
function summary.ended_by_budget(source)
  return provenance.budget_words(sequences.map(source.files, function(entry)
    local record = entry.provenance
    return record and record.complete == false
      and { tp = entry.tp, nodes = entry.nodes, budget_s = record.budget_s or 0 } or nil
  end))
end

-- The largest error of sums of 16 bits that a switch added, over all devices, in units in the last place, as
-- text; nil: none is known.
function summary.largest_switch_error(files)
  local largest
  for _, entry in ipairs(files) do
    for _, device in ipairs(entry.provenance and entry.provenance.devices or {}) do
      local error_ulp = tonumber(device.at_end and device.at_end.largest_switch_error_ulp)
      if error_ulp and error_ulp > (largest or 0) then largest = error_ulp end
    end
  end
  return largest and ("%.2f units in the last place"):format(largest)
end

-- The network interfaces of the files of rows that several nodes measured, with their rates, as text; nil:
-- none is recorded. Also the largest numbers of slow nodes among them, and of groups that measured at once.
function summary.network(files)
  local words, slow, groups = {}, 0, 1
  for _, entry in ipairs(files) do
    local network = entry.provenance and entry.provenance.network
    slow = math.max(slow, network and network.slow_nodes or 0)
    groups = math.max(groups, entry.provenance and entry.provenance.beside or 1)
    sequences.append(words, provenance.interface_words(network and network.interfaces or {}))
  end
  if slow > 0 then words[#words + 1] = quantities.counted(slow, "node") .. " slower than the others" end
  if groups > 1 then words[#words + 1] = ("up to %d groups measured at once"):format(groups) end
  return words[1] and table.concat(sequences.distinct(words), "; ") or nil
end

-- A sentence with the shapes for which the choices of a source are made, and the files that do not mention
-- them; nil: all shapes have equal weight.
function summary.workload(source)
  local words = settings.workload_in_words(source)
  if not words then return nil end
  local without = sequences.map(summary.formats(source), function(entry)
    return (entry.format.mute or entry.format.view) and entry.format.file or nil
  end)
  return ("The choices are for %s. In cells without these, all shapes have equal weight. Files that do " ..
    "not mention this, or have no shapes: %s."):format(words, table.concat(without, ", "))
end

-- The cost of stable numerics in a sentence, from the total of formats.choice_cost.
function summary.stable_cost_in_words(total)
  local words = ("%d of %s differ from those of --numerics any; %s."):format(total.other,
    quantities.counted(total.cells, "choice"), cost_in_words(total))
  if total.without == 0 then return words end
  return words .. (" %s no choice, because no strategy with these bits has a time."):format(
    total.without == 1 and "1 cell has" or total.without .. " cells have")
end

-- A line with the numerics class of a source's tables, and the files that do not mention it; nil: any class.
function summary.restriction(source)
  if not settings.numerics_word(source) then return nil end
  local mute = sequences.map(summary.formats(source), function(entry)
    return entry.format.mute and entry.format.file or nil
  end)
  if source.stable then
    return ("In these tables all choices of a row of token counts have equal bits, and keep them when the " ..
      "tables are made again. In unmeasured cells programs get %s, unless their own rule differs (see " ..
      "there); it may have other bits. %s have no line about this."):format(
      model.fallback(source), table.concat(mute, ", "))
  end
  local words = "These tables have only choices with the bits of %s, which programs also get in " ..
    "unmeasured cells, unless their own rule differs (see there). %s have no line about this."
  return words:format(source.same_bits_as, table.concat(mute, ", "))
end

return summary
