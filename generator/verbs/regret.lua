-- gentables regret: the losses of an artifact's choices on rows from which it was not made.
-- consult/regret.lua has the numbers.
local cell_records = require "rows.cell_records"
local fail = require "base.fail"
local json = require "codec.json"
local quantities = require "base.quantities"
local regret = require "consult.regret"

local counted = quantities.counted

local DEFAULT_WORST = 5

-- ---- output -----------------------------------------------------------------------------------

local function percent(share) return ("%.2f %%"):format(100 * share) end

local function print_aliased(found)
  if not found then
    print("  which shapes share a cell is unknown for this lookup")
  elseif found.cells == 0 then
    print("  no cell has several of the shapes")
  else
    print(("  %s several shapes, %d in all; in %d no choice is the best for all%s"):format(
      found.cells == 1 and "1 cell has" or counted(found.cells, "cell") .. " have", found.shapes,
      found.torn, found.torn > 0 and (", at a loss of up to " .. percent(found.loss)) or ""))
  end
end

local function print_lookup(title, found)
  print(("  %-36s %10s %10s %10s"):format(title, "mean", "p99", "worst"))
  for _, line in ipairs { { "outside the rows' intervals", found.certain }, { "as measured", found.raw } } do
    print(("    %-34s %10s %10s %10s"):format(line[1], percent(line[2].mean), percent(line[2].p99),
      percent(line[2].worst)))
  end
  if found.unmeasured > 0 then
    print(("  %s unmeasured: the lookup returns the fallback"):format(counted(found.unmeasured, "shape")))
  end
  if found.unanswered > 0 then
    print(("  %s left out: no row of the strategy that the lookup returns"):format(
      counted(found.unanswered, "shape")))
  end
  print_aliased(found.aliased)
end

local function print_result(path, found, by_floor)
  print(("%s: %s looked up"):format(path, counted(found.shapes, "shape")))
  if found.others > 0 then
    print(("  %s of another data type, operation or fusion left out"):format(counted(found.others, "shape")))
  end
  print_lookup("regret", found)
  print_lookup("by the floor of log2 (TensorRT-LLM)", by_floor)
end

local function print_worst(found, count)
  for i = 1, math.min(count, #found.worst) do
    local loss = found.worst[i]
    if loss.raw <= 0 then break end
    print(("  %s: %s takes %.2f us, %s %.2f (%s)"):format(cell_records.describe(loss.shape), loss.strategy,
      loss.shape.rows[loss.strategy].time_us, loss.best.strategy, loss.best.time_us, percent(loss.raw)))
  end
end

local function worst_of(found)
  local worst = {}
  for i, loss in ipairs(found.worst) do
    if i > DEFAULT_WORST or loss.raw <= 0 then break end
    worst[i] = { world_size = loss.shape.world_size, fusion = loss.shape.fusion,
      hidden_size = loss.shape.hidden_size, num_tokens = loss.shape.num_tokens, strategy = loss.strategy,
      best = loss.best.strategy, raw = loss.raw, certain = loss.certain }
  end
  return json.array(worst)
end

local function print_json(path, found, by_floor)
  local function of(lookup)
    return { unanswered = lookup.unanswered, unmeasured = lookup.unmeasured, aliased = lookup.aliased,
      certain = lookup.certain, raw = lookup.raw, worst = worst_of(lookup) }
  end
  local out = of(found)
  out.table, out.shapes, out.others, out.flooring = path, found.shapes, found.others, of(by_floor)
  print(json.encode(out))
end

return {
  summary = "Prints how much time an artifact's choices lose on rows that it was not made from. The choices\n"
    .. "are those of the artifact's own lookup. A header is code: it is compiled, and runs confined, with\n"
    .. "at most 1 GiB of memory and 60 s. It can read files, but neither write any nor reach the network or\n"
    .. "other processes.",
  options = {
    { name = "table", trusted = true, value = "FILE", required = true,
      help = "allreduce_table.h, customAllReduceUtils.h (TensorRT-LLM's own, too), thresholds.json, "
        .. "generated_lookup_table.cpp or table.csv" },
    { name = "rows", value = "FILE", many = true, required = true,
      help = "benchmark.tp{N}.{arch}.csv that the table was not made from; repeat it for more" },
    { name = "sm", value = "N", type = "whole",
      help = "SM version, for a header with several (default: that in the rows' file names)" },
    { name = "most", value = "SHARE", type = "number", least = 0,
      help = "exit code 1 if the mean regret outside the rows' intervals is above this share" },
    { name = "unconfined", trusted = true,
      help = "run the lookup of a header with all your rights, where it cannot be "
      .. "confined or needs more" },
    { name = "json", help = "print JSON" },
  },
  example = "gentables regret --table tables/host/allreduce_table.h \\\n"
    .. "    --rows tests/recorded/benchmark.tp2.host.csv",
  run = function(args)
    local found, by_floor = regret.of(args.table, regret.shapes(args.rows),
      { sm = args.sm or regret.sm_version(args.rows), unconfined = args.unconfined })
    if args.json then
      print_json(args.table, found, by_floor)
    else
      print_result(args.table, found, by_floor)
      print_worst(found, DEFAULT_WORST)
    end
    if #found.worst == 0 then fail.work("no shape has a row of the strategy that the lookup returns") end
    if args.most and found.certain.mean > args.most then
      fail.work("the mean regret outside the rows' intervals is %s, above %s",
        percent(found.certain.mean), percent(args.most))
    end
  end,
}
