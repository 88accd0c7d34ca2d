-- The messages of a sweep about its TP sizes: before it measures, after it has written, and about failures.
local fail = require "base.fail"
local file = require "core.file"
local lists = require "lists.lists"
local plan = require "rows.cells"
local quantities = require "base.quantities"

local outcome = {}

-- ---- before measuring -------------------------------------------------------------------------

-- The TP sizes of rows that are there and not asked for.
local function say_left_out(job)
  for _, name in ipairs(fail.unless(file.list(job.out))) do
    local tp, arch = name:match("^benchmark%.tp(%d+)%.(.*)%.csv$")
    if arch == job.arch and not lists.contains(job.spec.tp, math.tointeger(tp)) then
      print(("%s/%s: the spec has no TP %s; it stays, and no table has it"):format(job.out, name, tp))
    end
  end
end

function outcome.announce(job)
  say_left_out(job)
  local continues = false
  for _, world in ipairs(job.worlds) do
    if world.note then print(("%s: %s"):format(world.csv, world.note)) end
    continues = continues or world.taken_up
  end
  if continues then print("goes on where an interrupted sweep stopped") end
end

-- ---- after writing ----------------------------------------------------------------------------

-- strategy -> { strategy, cells, from, to }: in how many cells it is best, and how large their messages are.
local function winners(with)
  local best = {}
  for _, record in ipairs(with) do
    local cell = plan.key(plan.record(record))
    local is_better = not best[cell] or record.time_us < best[cell].time_us
    if is_better and lists.may_win(record.strategy) then best[cell] = record end
  end
  local tally, ranked, count = {}, {}, 0
  for _, record in pairs(best) do
    local entry = tally[record.strategy]
    if not entry then
      entry = { strategy = record.strategy, cells = 0, from = record.size, to = record.size }
      tally[record.strategy] = entry
      ranked[#ranked + 1] = entry
    end
    entry.cells, count = entry.cells + 1, count + 1
    entry.from, entry.to = math.min(entry.from, record.size), math.max(entry.to, record.size)
  end
  table.sort(ranked, function(a, b)
    if a.cells ~= b.cells then return a.cells > b.cells end
    return a.strategy < b.strategy
  end)
  return ranked, count
end

local function say_best(world)
  local ranked, count = winners(world.with)
  for i, entry in ipairs(ranked) do
    print(("%s %-24s lowest median in %d of %d cells, %s to %s"):format(
      i == 1 and ("TP %d:"):format(world.size) or (" "):rep(4 + #tostring(world.size)), entry.strategy,
      entry.cells, count, quantities.exact_bytes(entry.from),
      quantities.exact_bytes(entry.to)))
  end
end

local function say_effort(world)
  if world.launches == 0 then return end
  print(("      measured for %.1f s, in %d launches of the bench"):format(world.measured_s, world.launches))
end

-- Where the regime of earlier rows makes the rows after all: what others had.
local function say_regimes(world)
  local regime, others = world:chosen(), 0
  for _, other in ipairs(world.regimes) do
    if other ~= regime then others = others + other.planner:count_visits() end
  end
  if regime and regime.keeps and next(world.known) and others > 0 then
    print(("TP %d: %d visits in another regime of the machine do not count; the rows are of that of before")
      :format(world.size, others))
  end
end

local function say_cut_off(job, world)
  if not world.cut_off then return end
  local regime = world:chosen()
  local reached, wanted = regime and regime.launch - regime.before or 0, job.spec.limits.launches
  local of = reached <= wanted and (" of %d"):format(wanted) or ""
  print(("TP %d: budget spent: %d%s launches, %s; the next sweep goes on"):format(world.size, reached, of,
    world.unreached == 0 and "not of all points, but every cell reached" or ("%d cell%s not reached"):format(
      world.unreached, world.unreached == 1 and "" or "s")))
end

local function say_without(world)
  local counts, reasons = {}, {}
  for _, entry in ipairs(world.without) do
    if not counts[entry.reason] then reasons[#reasons + 1] = entry.reason end
    counts[entry.reason] = (counts[entry.reason] or 0) + 1
  end
  for _, reason in ipairs(reasons) do print(("      no time for %d: %s"):format(counts[reason], reason)) end
  if world.derived then
    local words = "      not measured: %d, which follow from what was; --exhaustive measures them"
    print(words:format(world.derived))
  end
end

local function say_refused(world)
  if file.exists(world.csv) then return end
  print(("TP %d: no bench starts"):format(world.size))
  say_without(world)
end

function outcome.print(job)
  for _, world in ipairs(job.worlds) do
    local count = #world.with == 1 and "1 row" or #world.with .. " rows"
    if world.refusal and file.exists(world.csv) then
      print(("%s: stays as it was"):format(world.csv))
    elseif world.refusal and #world.with > 0 then
      print(("%s: not written; %s are kept for the next sweep, which goes on"):format(world.csv, count))
    elseif #world.with == 0 then
      print(("%s: not written, for nothing has a time"):format(world.csv))
    elseif world.current then
      print(("%s: up to date, %s of this machine, spec and bench"):format(world.csv, count))
    else
      print(("wrote %s: %s, and %s"):format(world.csv, count, world.json:match("[^/]*$")))
    end
  end
  for _, world in ipairs(job.worlds) do
    if world.refusal then
      say_refused(world)
    elseif not world.current then
      say_regimes(world)
      say_cut_off(job, world)
      say_best(world)
      say_without(world)
      say_effort(world)
    end
  end
end

-- ---- failures ---------------------------------------------------------------------------------

-- Raises where no bench started at some TP sizes. `goes_on`: what is said of the others.
function outcome.fail_for(refused, goes_on)
  local sizes, reasons = {}, {}
  for _, world in ipairs(refused) do
    local reason = world.refusal_told
    if not sizes[reason] then reasons[#reasons + 1], sizes[reason] = reason, {} end
    table.insert(sizes[reason], world.size)
  end
  for i, reason in ipairs(reasons) do
    reasons[i] = ("TP %s: %s"):format(table.concat(sizes[reason], ", "), reason)
  end
  fail.work("%s%s", table.concat(reasons, "; "), goes_on)
end

function outcome.raise(job, refused)
  if #refused > 0 then
    outcome.fail_for(refused, "; the next sweep tries again, unless --tp has others alone")
  end
  if job.failed > 0 then
    fail.work("%d cell%s could not be measured; the next sweep tries them again", job.failed,
      job.failed == 1 and "" or "s")
  end
  if job.incomplete > 0 then
    fail.work("%d cell%s could be measured without a strategy that fails there; the next sweep tries it "
      .. "again", job.incomplete, job.incomplete == 1 and "" or "s")
  end
  for _, world in ipairs(job.worlds) do
    if #world.with == 0 then fail.work("TP %d: no cell has a time, so there are no rows", world.size) end
  end
end

return outcome
