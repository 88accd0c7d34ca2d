-- A drawing of the steps of each configuration, as SVG: a row for each, with GEMMs alone, serial and
-- overlapped as a median with its interval, if it has one, on one scale from 0.
local findings = require "workload.findings"

local chart = {}

local WIDTH, LEFT, RIGHT, ROW, TOP = 720, 150, 16, 34, 26
local KINDS = {
  { "gemms", "GEMMs alone", "#4477aa" }, { "serial", "serial", "#cc6677" },
  { "overlapped", "overlapped", "#228833" },
}

-- A round step of the scale: a few of them reach `most`.
local function tick_of(most)
  local tick = 10 ^ math.floor(math.log(most, 10))
  for _, factor in ipairs { 0.1, 0.2, 0.5, 1 } do
    if most / (tick * factor) <= 6 then return tick * factor end
  end
  return tick
end

local function largest(entries)
  local most = 0
  for _, entry in ipairs(entries) do
    for _, kind in ipairs(KINDS) do
      local time = entry.result.times[kind[1]]
      most = math.max(most, findings.has_interval(time) and time.high or time.median)
    end
  end
  return most
end

local function add_axis(add, most, length, x, bottom)
  local tick = tick_of(most / length)
  for i = 0, math.floor(most / length / tick) do
    local at = x(i * tick * length)
    add('<line x1="%.1f" x2="%.1f" y1="%d" y2="%d" stroke="currentColor" opacity="0.15"/>', at, at, TOP,
      bottom)
    add('<text x="%.1f" y="%d" text-anchor="middle">%g</text>', at, bottom + 14, i * tick)
  end
end

local function add_entry(add, entry, x, top)
  add('<text x="%d" y="%d" text-anchor="end">%s</text>', LEFT - 8, top + ROW // 2 + 4, findings.name(entry))
  for i, kind in ipairs(KINDS) do
    local time, y = entry.result.times[kind[1]], top + 8 * i
    if findings.has_interval(time) then
      add('<line x1="%.1f" x2="%.1f" y1="%d" y2="%d" stroke="%s" stroke-width="2"/>', x(time.low),
        x(time.high), y, y, kind[3])
    end
    add('<circle cx="%.1f" cy="%d" r="3.5" fill="%s"><title>%s: %s</title></circle>',
      x(time.median), y, kind[3], kind[2], findings.time(time.median))
  end
end

-- The steps of measured entries, as markup; `length`: of the numbers' unit, in us.
function chart.steps(entries, length)
  local out, most = {}, largest(entries)
  local bottom = TOP + ROW * #entries
  local function add(format, ...) out[#out + 1] = format:format(...) end
  local function x(us) return LEFT + (WIDTH - LEFT - RIGHT) * us / most end
  add('<svg viewBox="0 0 %d %d" role="img" font-family="sans-serif" font-size="11" fill="currentColor">',
    WIDTH, bottom + 20)
  for i, kind in ipairs(KINDS) do
    local left = LEFT + 120 * (i - 1)
    add('<circle cx="%d" cy="12" r="4" fill="%s"/><text x="%d" y="16">%s</text>', left, kind[3], left + 8,
      kind[2])
  end
  add_axis(add, most, length, x, bottom)
  for i, entry in ipairs(entries) do add_entry(add, entry, x, TOP + ROW * (i - 1)) end
  add("</svg>")
  return table.concat(out, "\n")
end

return chart
