-- The messages of a sweep about its TP sizes: before it measures, after it has written, and about failures.
local backends = require "conversation.backends"
local cell_records = require "rows.cell_records"
local fail = require "base.fail"
local file = require "core.file"
local leftovers = require "sweep.leftovers"
local lists = require "lists.lists"
local next_commands = require "surroundings.next_commands"
local ordering = require "base.ordering"
local provenance = require "rows.provenance"
local quantities = require "base.quantities"
local rank_placement = require "lists.rank_placement"
local sequences = require "base.sequences"

local outcome = {}

-- ---- before measuring -------------------------------------------------------------------------

function outcome.announce(job)
  leftovers.announce(job)
  local continues = false
  for _, state in ipairs(job.states) do
    if state.note then print(("%s: %s"):format(state.csv, state.note)) end
    if state.journal_note then print(("%s: %s"):format(state.part, state.journal_note)) end
    continues = continues or state.taken_up
  end
  if continues then print("resumes an interrupted sweep") end
end

-- ---- after writing ----------------------------------------------------------------------------

-- { strategy, cells, from, to }...: the number of cells in which a strategy is the fastest, most first, and
-- the least and largest message of these; and the number of all cells.
local function winners(with)
  local best = {}
  for _, record in ipairs(with) do
    local cell = cell_records.key(cell_records.record(record))
    local is_better = not best[cell] or record.time_us < best[cell].time_us
    if is_better and lists.may_win(record.strategy) then best[cell] = record end
  end
  local tally, ranked, count = {}, {}, 0
  for _, record in pairs(best) do
    local entry = sequences.entry(ranked, tally, record.strategy, function()
      return { strategy = record.strategy, cells = 0, from = record.size, to = record.size }
    end)
    entry.cells, count = entry.cells + 1, count + 1
    entry.from, entry.to = math.min(entry.from, record.size), math.max(entry.to, record.size)
  end
  return ordering.sort(ranked, ordering.by("-cells", "strategy")), count
end

local function print_best(state)
  local ranked, count = winners(state.with)
  for i, entry in ipairs(ranked) do
    local from, to = quantities.exact_bytes(entry.from), quantities.exact_bytes(entry.to)
    print(("%s %-24s lowest median in %d of %d cells, %s"):format(
      i == 1 and state.name .. ":" or (" "):rep(1 + #state.name), entry.strategy, entry.cells, count,
      from == to and from or from .. " to " .. to))
  end
end

local function print_effort(state)
  if state.launches == 0 then return end
  print(("      measured for %.1f s, in %d launch%s of the bench"):format(state.measured_s, state.launches,
    state.launches == 1 and "" or "es"))
end

-- If the rows are of the regime of earlier rows: prints how many visits of other regimes do not count.
local function print_regimes(state)
  local regime, others = state:chosen(), 0
  for _, other in ipairs(state.regimes) do
    if other ~= regime then others = others + other.planner:count_visits() end
  end
  local has_rows = next(state.known) ~= nil or #state.begun > 0
  if regime and regime.keeps and has_rows and others > 0 then
    print(("%s: %d visits in another regime of the machine do not count; the rows are of the earlier one")
      :format(state.name, others))
  end
end

local function print_cut_off(job, state)
  if not state.cut_off then return end
  local regime = state:chosen()
  local reached, wanted = regime and regime.launch - regime.before or 0, job.spec.limits.launches
  local of = reached <= wanted and (" of %d"):format(wanted) or ""
  print(("%s: the budget ended the sweep: %d%s launches, %s"):format(state.name, reached, of,
    state.unreached == 0 and "every cell reached, but not every point" or ("%d cell%s not reached"):format(
      state.unreached, state.unreached == 1 and "" or "s")))
end

local function print_without(state)
  for _, group in ipairs(ordering.groups(state.without, function(entry) return entry.reason end)) do
    print(("      no time for %d: %s"):format(#group, group.key))
  end
  if state.derived then
    local words = "      not measured: %d, unlikely to change a choice; --exhaustive measures them"
    print(words:format(state.derived))
  end
end

local function print_disturbed(state)
  local count = #state.disturbed
  if count == 0 then return end
  local words = "      disturbed: %d %s uncertain by a factor of 2 or more (%s)"
  print(words:format(count, count == 1 and "row, with a median that is" or "rows, with medians that are",
    state.json:match("[^/]*$")))
end

local function print_refused(state)
  if file.exists(state.csv) then return end
  print(("%s: no bench starts%s"):format(state.name, #state.with > 0 and " any more" or ""))
  print_without(state)
end

-- Prints the TP sizes at which a budget ended this sweep, or the one that made the rows, how to continue, and
-- what that is expected to gain.
local function print_how_to_refine(job)
  local ended, gains = {}, {}
  for _, state in ipairs(job.states) do
    local budget_s = not state.refusal and #state.with > 0 and state:ended_by(job)
    if budget_s then
      ended[#ended + 1] = { tp = state.size, nodes = state.nodes, budget_s = budget_s }
      gains[#gains + 1] = { refine = state:refinement() }
    end
  end
  local gain = provenance.refinement(gains)
  -- Without their number: the reports have that of the table, and the planner also counts cells for which a
  -- strategy is untried (planning/provisional_table.lua).
  local words = gain and provenance.refinement_words(gain, gain.uncertain, "the uncertain choices")
  if words then print(words .. ".") end
  words = provenance.budget_words(ended, next_commands.refine(job.path, job.out))
  if words then print(words) end
end

function outcome.print(job)
  for _, state in ipairs(job.states) do
    local count, are = quantities.counted(#state.with, "row"), #state.with == 1 and "is" or "are"
    if state.refusal and file.exists(state.csv) then
      print(("%s: not changed"):format(state.csv))
    elseif state.refusal and #state.with > 0 then
      print(("%s: not written; %s %s kept for the next sweep, which resumes"):format(state.csv, count, are))
    elseif #state.with == 0 then
      print(("%s: not written; nothing has a time"):format(state.csv))
    elseif state.current then
      print(("%s: up to date, %s of this machine, spec and bench"):format(state.csv, count))
    else
      print(("wrote %s: %s, and %s"):format(state.csv, count, state.json:match("[^/]*$")))
    end
  end
  for _, state in ipairs(job.states) do
    if state.refusal then
      print_refused(state)
    elseif not state.current then
      print_regimes(state)
      print_cut_off(job, state)
      print_best(state)
      print_without(state)
      print_disturbed(state)
      print_effort(state)
    end
  end
  print_how_to_refine(job)
end

-- ---- failures ---------------------------------------------------------------------------------

-- Raises for TP sizes at which no bench started. `goes_on`: the end of the message.
function outcome.fail_for(job, refused, goes_on)
  local groups = ordering.groups(refused, function(state) return state.refusal_message end)
  local reasons = sequences.map(groups, function(group)
    local sizes = sequences.map(group, function(of) return rank_placement.size(of.size, of.nodes) end)
    return ("TP %s: %s"):format(table.concat(sizes, ", "), group.key)
  end)
  fail.with(backends.code_of_refusal(job.backend, job.identity, job.launcher), "%s%s",
    table.concat(reasons, "; "), goes_on)
end

function outcome.raise(job, refused)
  if #refused > 0 then
    outcome.fail_for(job, refused, "; the next sweep tries again; --tp leaves TP sizes out")
  end
  if job.failed > 0 then
    fail.work("%d cell%s could not be measured; the next sweep tries them again", job.failed,
      job.failed == 1 and "" or "s")
  end
  if job.incomplete > 0 then
    fail.work("%d cell%s measured without a strategy that fails there; the next sweep tries it again",
      job.incomplete, job.incomplete == 1 and "" or "s")
  end
  for _, state in ipairs(job.states) do
    if #state.with == 0 then fail.work("%s: no cell has a time, so there are no rows", state.name) end
  end
end

return outcome
