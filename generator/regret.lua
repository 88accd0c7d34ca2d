-- gentables regret: what an artifact's choices lose on rows that it was not made from. Asks the artifact's
-- own lookup (ask.lua), so that what is judged is what its users get, bins and fallbacks included.
local ask = require "ask"
local fail = require "fail"
local json = require "json"
local lists = require "lists"
local model = require "model"
local plan = require "plan"
local rows = require "core.rows"

local DEFAULT_WORST = 5

-- ---- the rows ---------------------------------------------------------------------------------

-- The shapes of the rows, in order: { world_size, fusion, ..., rows = { strategy -> record } }. All rows have
-- to be of one machine.
local function shapes_of(paths)
  local by_key, shapes, files = {}, {}, {}
  for i, path in ipairs(paths) do files[i] = { path = path } end
  model.read_provenance(files)
  for _, path in ipairs(paths) do
    for _, record in ipairs(fail.unless(rows.records(path))) do
      local key = plan.key(plan.record(record))
      if not by_key[key] then
        by_key[key] = plan.record(record, nil, { rows = {} })
        shapes[#shapes + 1] = by_key[key]
      end
      by_key[key].rows[record.strategy] = record
    end
  end
  table.sort(shapes, plan.before)
  return shapes
end

-- The fastest row of what a table may choose.
local function best_of(shape)
  local best
  for name, record in pairs(shape.rows) do
    local may_win = lists.find("strategies", name).candidate ~= false
    local is_first = not best or record.time_us < best.time_us
      or (record.time_us == best.time_us and record.strategy < best.strategy)
    if may_win and is_first then best = record end
  end
  return best
end

-- ---- regret -----------------------------------------------------------------------------------

-- What a choice loses at a shape, as a share of the best time: as measured, and what is certain, for it lies
-- outside both intervals. Nil where the shape has no row of the choice.
local function regret_at(shape, strategy)
  local chosen, best = shape.rows[strategy], best_of(shape)
  if not chosen or not best then return nil end
  local raw = chosen.time_us / best.time_us - 1
  if not chosen.low_us or not best.high_us then return raw, raw end
  return raw, math.max(0, chosen.low_us / best.high_us - 1)
end

local function percentile(sorted, share) return sorted[math.max(1, math.ceil(share * #sorted))] or 0 end

local function spread_of(values)
  table.sort(values)
  local total = 0
  for _, value in ipairs(values) do total = total + value end
  return { mean = #values > 0 and total / #values or 0, p99 = percentile(values, 0.99),
    worst = values[#values] or 0 }
end

-- What the answers lose over all shapes: { shapes, unanswered, unmeasured, certain, raw, worst = list }.
local function judge(shapes, answers)
  local certain, raw, losses = {}, {}, {}
  local found = { shapes = #shapes, unanswered = 0, unmeasured = 0 }
  for i, shape in ipairs(shapes) do
    local answer = answers[i]
    local as_measured, sure = regret_at(shape, answer.strategy)
    if not answer.measured then found.unmeasured = found.unmeasured + 1 end
    if as_measured then
      raw[#raw + 1], certain[#certain + 1] = as_measured, sure
      losses[#losses + 1] = { shape = shape, strategy = answer.strategy, best = best_of(shape),
        raw = as_measured, certain = sure }
    else
      found.unanswered = found.unanswered + 1
    end
  end
  table.sort(losses, function(a, b)
    if a.certain ~= b.certain then return a.certain > b.certain end
    if a.raw ~= b.raw then return a.raw > b.raw end
    return plan.before(a.shape, b.shape)
  end)
  found.certain, found.raw, found.worst = spread_of(certain), spread_of(raw), losses
  return found
end

-- ---- what to say ------------------------------------------------------------------------------

local function percent(share) return ("%.2f %%"):format(100 * share) end

local function say(path, found)
  print(("%s: %d shapes asked"):format(path, found.shapes))
  if found.unmeasured > 0 then
    print(("  %d answered by the fallback: not measured"):format(found.unmeasured))
  end
  if found.unanswered > 0 then
    print(("  %d have no row of the strategy that was answered, and are not judged"):format(found.unanswered))
  end
  print(("  %-34s %10s %10s %10s"):format("regret", "mean", "p99", "worst"))
  for _, line in ipairs { { "outside the rows' intervals", found.certain }, { "as measured", found.raw } } do
    print(("  %-34s %10s %10s %10s"):format(line[1], percent(line[2].mean), percent(line[2].p99),
      percent(line[2].worst)))
  end
end

local function say_worst(found, count)
  for i = 1, math.min(count, #found.worst) do
    local loss = found.worst[i]
    if loss.raw <= 0 then break end
    print(("  %s: %s takes %.2f us, %s %.2f (%s)"):format(plan.describe(loss.shape), loss.strategy,
      loss.shape.rows[loss.strategy].time_us, loss.best.strategy, loss.best.time_us, percent(loss.raw)))
  end
end

local function print_json(path, found)
  local worst = {}
  for i, loss in ipairs(found.worst) do
    if i > DEFAULT_WORST or loss.raw <= 0 then break end
    worst[i] = { world_size = loss.shape.world_size, fusion = loss.shape.fusion,
      hidden_size = loss.shape.hidden_size, num_tokens = loss.shape.num_tokens, strategy = loss.strategy,
      best = loss.best.strategy, raw = loss.raw, certain = loss.certain }
  end
  print(json.encode { table = path, shapes = found.shapes, unanswered = found.unanswered,
    unmeasured = found.unmeasured, certain = found.certain, raw = found.raw, worst = json.array(worst) })
end

local function read_bound(text)
  local bound = tonumber(text)
  if not bound or bound < 0 then fail.input("--most %s: a share such as 0.01 would be right", text) end
  return bound
end

return {
  summary = "Says what an artifact's choices lose on fresh rows, by asking its own lookup.",
  options = {
    { name = "table", value = "FILE", required = true,
      help = "allreduce_table.h, generated_lookup_table.cpp or table.csv" },
    { name = "rows", value = "FILE", many = true, required = true,
      help = "benchmark.tp{N}.{arch}.csv that the table was not made from; again for more" },
    { name = "most", value = "SHARE", help = "exit code 1 if the mean regret is above this" },
    { name = "json", help = "for programs" },
  },
  example = "gentables regret --table tables/host/allreduce_table.h --rows fresh/benchmark.tp2.host.csv",
  run = function(args)
    local bound = args.most and read_bound(args.most)
    local shapes = shapes_of(args.rows)
    local found = judge(shapes, ask.artifact(args.table, shapes))
    if args.json then
      print_json(args.table, found)
    else
      say(args.table, found)
      say_worst(found, DEFAULT_WORST)
    end
    if #found.worst == 0 then fail.work("no shape could be judged: the rows have none of the answers") end
    if bound and found.certain.mean > bound then
      fail.work("the mean regret is %s, above %s", percent(found.certain.mean), percent(bound))
    end
  end,
}
