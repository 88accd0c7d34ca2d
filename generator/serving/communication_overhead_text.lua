-- The text of communicationOverhead: two runs side by side. Documented figures have all digits; others are
-- rounded.
local fail = require "base.fail"
local kernel_kinds = require "profile.kernel_kinds"

local in_ms, in_us = kernel_kinds.in_ms, kernel_kinds.in_us

local nothing = {}

-- The shortest text that reads back as the number, with two decimals at least.
local function exact(number)
  if math.type(number) == "integer" then return ("%d"):format(number) end
  for digits = 15, 17 do
    local text = ("%." .. digits .. "g"):format(number)
    if tonumber(text) == number and not text:find("e", 1, true) then
      local decimals = #(text:match("%.(%d+)$") or "")
      return decimals < 2 and ("%.2f"):format(number) or text
    end
  end
  return (number < 1 and "%.6f" or "%.2f"):format(number)
end

local function share(number) return ("%.2f"):format(number) end

local function thousandths(number) return ("%.3f"):format(number) end

local function change(before, after)
  if not before or not after or before == 0 then return "" end
  return ("%+.2f %%"):format((after - before) / before * 100)
end

local function row_text(name, left, right, changed, result)
  local text = ("%-34s %19s %19s"):format(name, left, right)
  if changed ~= "" then text = ("%s %11s"):format(text, changed) end
  return result and text .. "  " .. result or text
end

local function line(name, before, after, format, result)
  return row_text(name, before and format(before) or "-", after and format(after) or "-",
    change(before, after), result)
end

local function append_kinds(out, left, right)
  local function pair(name, format, get)
    out[#out + 1] = line(name, get(left), get(right), format)
  end
  pair("all kernels: total (ms)", exact, function(kinds) return in_ms(kinds.sums.all.total_ns) end)
  pair("all kernels: calls", exact, function(kinds) return kinds.sums.all.instances end)
  for _, kind in ipairs { { "MoE", "moe" }, { "NCCL", "nccl" }, { "attention", "attention" } } do
    local function get(field) return function(kinds) return kinds.sums[kind[2]][field] end end
    pair(kind[1] .. ": total (ms)", exact, function(kinds) return in_ms(kinds.sums[kind[2]].total_ns) end)
    pair(kind[1] .. ": share of all (%)", share, get "time_pct")
    pair(kind[1] .. ": calls", exact, get "instances")
  end
  pair("NCCL total / fused_moe total", thousandths, kernel_kinds.communication_per_compute)
end

local function append_collectives(out, left, right)
  local function append(name)
    local before, after = left.sums[name] or nothing, right.sums[name] or nothing
    if before == nothing and after == nothing then return end
    out[#out + 1] = line(name .. ": total (ms)", in_ms(before.total_ns), in_ms(after.total_ns), exact)
    out[#out + 1] = line(name .. ": calls", before.instances, after.instances, exact)
    out[#out + 1] = line(name .. ": average (us)", in_us(before.avg_ns), in_us(after.avg_ns), thousandths)
  end
  for _, name in ipairs(kernel_kinds.collectives) do append(name) end
end

local function short(name)
  return (fail.cut(name, 60):gsub("%c", "?"))
end

local function append_top(out, side)
  out[#out + 1] = ("\nlargest kernels, %s:"):format(side.label)
  for _, kernel in ipairs(side.kinds.top) do
    out[#out + 1] = ("  %16.3f ms %6.2f %% %9d calls  %s"):format(kernel.total_ns / 1e6, kernel.time_pct,
      kernel.instances, short(kernel.name))
  end
end

-- The path of a side's file, and a note if several kernels have "fused_moe" in their names.
local function append_head(out, side)
  out[#out + 1] = ("%-9s %s (%d kernels)"):format(side.label, side.path, side.kinds.sums.all.kernels)
  local count = side.kinds.fused_moe_kernels
  if count > 1 then
    out[#out + 1] = ("%-9s %d kernels have fused_moe in their names; fused_moe is the first, %s"):format("",
      count, short(side.kinds.fused_moe.name))
  end
end

-- The text: `sides` are { label, path, kinds } of the two runs, `comparison` is communication_overhead's.
return function(sides, comparison)
  local out = {}
  for _, side in ipairs(sides) do append_head(out, side) end
  local left, right = sides[1].kinds, sides[2].kinds
  local function title(name)
    out[#out + 1] = "\n" .. row_text(name, sides[1].label, sides[2].label, "change")
  end
  title "kernel time"
  append_kinds(out, left, right)
  title "collectives (NCCL)"
  append_collectives(out, left, right)
  title "compared, less is better"
  for _, row in ipairs(comparison.rows) do
    out[#out + 1] = line(row.name, row.before, row.after, exact, row.result)
  end
  for _, side in ipairs(sides) do append_top(out, side) end
  local counts = comparison.counts
  out[#out + 1] = ("\n%d of %d improved, %d unchanged, %d worse: %s"):format(counts.improved, counts.total,
    counts.unchanged, counts.worse, comparison.verdict)
  return table.concat(out, "\n") .. "\n"
end
