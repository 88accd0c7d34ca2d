-- Kernel summaries as CSV: what the GUI of Nsight Systems exports (each cell with its unit, 383.682 us), and
-- what `nsys stats --report cuda_gpu_kern_sum --format csv` writes (the unit in the header).
-- kernel_summary.lua says what comes out.
--
-- Lines before the header, and other reports in the same file, are left out. Times are read as decimal
-- fractions and brought to nanoseconds in one step, so that 102.664 s is 102664000000 ns and not a neighbour.
local file = require "core.file"

local csv = {}

-- What a column holds, by its name in any version of nsys. A header with another one is another report's.
local columns = { ["time"] = "share", ["total time"] = "total_ns", ["instances"] = "instances",
  ["avg"] = "avg_ns", ["average"] = "avg_ns", ["med"] = "med_ns", ["median"] = "med_ns", ["min"] = "min_ns",
  ["minimum"] = "min_ns", ["max"] = "max_ns", ["maximum"] = "max_ns", ["stddev"] = "std_ns",
  ["gridxyz"] = "grid", ["blockxyz"] = "block", ["name"] = "name" }

local times = { "total_ns", "avg_ns", "med_ns", "min_ns", "max_ns", "std_ns" }

local required = { "total_ns", "instances", "avg_ns", "min_ns", "max_ns", "name" }

-- Units as the power of ten that makes them nanoseconds. The micro sign is U+00B5 or the Greek letter U+03BC;
-- \xB5 alone is what is left of it in Latin-1.
local exponents = { ns = 0, nsec = 0, us = 3, usec = 3, ["\u{B5}s"] = 3, ["\u{3BC}s"] = 3, ["\xB5s"] = 3,
  ms = 6, msec = 6, s = 9, sec = 9 }
for _, unit in ipairs { "ns", "us", "\u{B5}s", "\u{3BC}s", "ms", "s" } do
  exponents[" " .. unit] = exponents[unit] -- the usual cell, without a search
end

local known_units = "ns, us, ms or s would be right"

-- A sum of times has to stay within 64 bits.
local longest_number = 18

local powers = {}
for i = 0, longest_number do powers[i] = math.tointeger(10 ^ i) end

local no_summary = "%s: there is no CUDA GPU kernel summary in it; right would be the GUI's export of one, "
  .. "nsys stats --report cuda_gpu_kern_sum --format csv, or nsys export --type sqlite"

-- Quoted cell that begins at `at` -> text, place after it; or nil where the quote is broken.
local function quoted_cell(line, at)
  local last, doubled = line:find('"', at + 1, true), false
  while last and line:byte(last + 1) == 34 do
    last, doubled = line:find('"', last + 2, true), true
  end
  if not last then return nil end
  local text = line:sub(at + 1, last - 1)
  return doubled and text:gsub('""', '"') or text, last + 1
end

-- The cells of a line, or nil where a quote is broken.
local function split(line)
  local cells, count, at = {}, 0, 1
  while true do
    local text, after
    if line:byte(at) == 34 then
      text, after = quoted_cell(line, at)
      if not text or after <= #line and line:byte(after) ~= 44 then return nil end
    else
      after = line:find(",", at, true) or #line + 1
      text = line:sub(at, after - 1)
    end
    count = count + 1
    cells[count] = text
    if after > #line then return cells end
    at = after + 1
  end
end

-- "Total Time (ns)" -> what it holds, its unit or nil.
local function parse_title(title)
  title = title:gsub("[\u{A0}%s]+", " "):lower()
  local name, unit = title:match("^ ?(.-) ?%((.-)%) ?$")
  return columns[name or title:match("^ ?(.-) ?$")], unit
end

-- The places of a header's columns by what they hold, and their units; nil where it is another report's.
local function parse_titles(cells)
  local places, units = {}, {}
  for place, title in ipairs(cells) do
    local what, unit = parse_title(title)
    if not what or places[what] then return nil end
    places[what], units[what] = place, unit
  end
  for _, what in ipairs(required) do
    if not places[what] then return nil end
  end
  return places, units
end

-- Which cell of a row holds what: { count, total_ns = 2, ..., exponent = { total_ns = 0, ... } }; nil where
-- the line is no header of a kernel summary; nil, message where it is one that cannot be read.
local function parse_header(line)
  if not line:find("Total Time", 1, true) then return nil end
  local cells = split(line)
  local header, units = parse_titles(cells or {})
  if not header then return nil end
  header.count, header.exponent = #cells, {}
  -- Before 2021 only the total said its unit, or none did: all were nanoseconds.
  local default = units.total_ns or (cells[header.avg_ns]:find("Average", 1, true) and "ns")
  for _, what in ipairs(times) do
    local unit = units[what] or default
    if unit and header[what] then
      if not exponents[unit] then
        return nil, ("column %q: its unit is unknown; %s"):format(cells[header[what]], known_units)
      end
      header.exponent[what] = exponents[unit]
    end
  end
  return header
end

-- "1,234,567" -> "1234567"; nil where the commas stand elsewhere.
local function without_thousands(number)
  local head, groups, rest = number:match("^(%d%d?%d?)([,%d]*)(.*)$")
  if not head or groups:gsub(",%d%d%d", "") ~= "" then return nil end
  return head .. groups:gsub(",", "") .. rest
end

-- digits.fraction, as a number of 10^exponent, exact where a number can be.
local function scale(digits, fraction, exponent)
  local shift = exponent - #fraction
  if #digits + #fraction + (shift > 0 and shift or 0) > longest_number then
    return tonumber(digits .. "." .. fraction) * 10.0 ^ exponent
  end
  local mantissa = math.tointeger(digits .. fraction)
  if shift >= 0 then return mantissa * powers[shift] end
  local power = powers[-shift]
  return mantissa % power == 0 and mantissa // power or mantissa / power
end

-- A cell -> nanoseconds, or nil, message. `exponent` is the header's unit; the cell's own goes before it.
local function parse_time(text, exponent)
  local digits, fraction, unit = text:match("^(%d+)%.?(%d*)(.*)$")
  if digits and unit == "" and exponent then return scale(digits, fraction, exponent) end
  if digits and exponents[unit] then return scale(digits, fraction, exponents[unit]) end
  -- The unusual: thousands in groups, powers of ten, other spaces.
  local number
  number, unit = text:match("^([%d.,]+)(.*)$")
  number = number and without_thousands(number)
  if not number then return nil, ("%q is no time"):format(text) end
  local power, rest = unit:match("^[eE]([+-]?%d%d?)(.*)$")
  unit = (rest or unit):gsub("\u{A0}", " "):match("^%s*(.-)%s*$")
  if unit ~= "" then exponent = exponents[unit] end
  if not exponent then
    return nil, ("%q: its unit is %s; %s"):format(text, unit == "" and "not told" or "unknown", known_units)
  end
  digits, fraction = number:match("^(%d+)%.?(%d*)$")
  if not digits then return nil, ("%q is no time"):format(text) end
  if power then return tonumber(number .. "e" .. math.tointeger(power) + exponent) end
  return scale(digits, fraction, exponent)
end

local function parse_count(text)
  if text:find(",", 1, true) then text = without_thousands(text) or text end
  local count = #text <= longest_number and text:find("^%d+$") and math.tointeger(text)
  if count and count > 0 then return count end
  return nil, ("%q is no number of calls"):format(text)
end

-- A line of a kernel summary -> kernel, or nil, message.
local function parse_row(line, header)
  local cells = split(line)
  if not cells then return nil, "a quote is opened and not closed; was the file cut off?" end
  if #cells ~= header.count then
    return nil, ("%d cells where the header has %d; was the file cut off?"):format(#cells, header.count)
  end
  local instances, message = parse_count(cells[header.instances])
  if not instances then return nil, message end
  local kernel = { name = cells[header.name], instances = instances }
  if kernel.name == "" then return nil, "a kernel without a name" end
  for i = 1, #times do
    local what = times[i]
    local place = header[what]
    if place then
      kernel[what], message = parse_time(cells[place], header.exponent[what])
      if not kernel[what] then return nil, message end
    end
  end
  return kernel
end

-- The standard deviation of two samples together, from that of each: the squares within and between them.
local function pooled_std(a, b)
  if not a.std_ns or not b.std_ns then return nil end
  local count = a.instances + b.instances
  local between = (a.avg_ns - b.avg_ns) ^ 2 * a.instances * b.instances / count
  local within = (a.instances - 1) * a.std_ns ^ 2 + (b.instances - 1) * b.std_ns ^ 2
  return math.sqrt((within + between) / (count - 1))
end

-- Adds what `other` says of the same kernel, as summaries by grid and block do. Medians cannot be added.
local function merge(kernel, other)
  local count = kernel.instances + other.instances
  kernel.std_ns = pooled_std(kernel, other)
  kernel.avg_ns = (kernel.avg_ns * kernel.instances + other.avg_ns * other.instances) / count
  kernel.med_ns = nil
  kernel.total_ns = kernel.total_ns + other.total_ns
  kernel.min_ns = math.min(kernel.min_ns, other.min_ns)
  kernel.max_ns = math.max(kernel.max_ns, other.max_ns)
  kernel.instances = count
end

-- What nsys writes between two reports where both of its streams go to one file.
local function is_notice(line)
  return line:find("^Processing %[") or line:find("^Generating ") or line:find("^SKIPPED") or
    line:find("^%s*%*%*") or line:find("^NOTICE")
end

-- Whether a line has the shape of a row: as many cells, and a number of calls among them.
local function looks_like_row(line, header)
  local cells = split(line)
  return cells and #cells == header.count and parse_count(cells[header.instances])
end

-- Whether a line that cannot be read as a row ends the summary: a notice, another report's header, or after
-- an empty line whatever has not the shape of a row. Any other is an error, not an end.
local function ends_before(line, header, after_blank)
  if is_notice(line) then return true end
  local suspicious = after_blank or line:find("Total Time", 1, true)
  return suspicious and not looks_like_row(line, header)
end

local function new_summary(header, line)
  return { header = header, line = line, kernels = {}, by_name = {} }
end

local function add(summary, kernel)
  local same = summary.by_name[kernel.name]
  if same then return merge(same, kernel) end
  summary.by_name[kernel.name] = kernel
  summary.kernels[#summary.kernels + 1] = kernel
end

-- The lines of `text` without their ends. No pattern: those look at every byte, plain searches at few.
local function lines_of(text)
  local at = 1
  return function()
    if at > #text then return nil end
    local last = text:find("\n", at, true) or #text + 1
    local line = text:sub(at, text:byte(last - 1) == 13 and last - 2 or last - 1)
    at = last + 1
    return line
  end
end

-- All kernel summaries of `text`, { header, line, kernels } each; or nil, message, line.
local function scan(text)
  local found, current, after_blank, number = {}, nil, false, 0
  for line in lines_of(text) do
    number = number + 1
    local header, message = parse_header(line)
    if message then return nil, message, number end
    if header then
      current = new_summary(header, number)
      found[#found + 1] = current
    elseif current and line ~= "" then
      local kernel
      kernel, message = parse_row(line, current.header)
      if kernel then
        add(current, kernel)
      elseif ends_before(line, current.header, after_blank) then
        current = nil
      else
        return nil, message, number
      end
    end
    after_blank = line == ""
  end
  return found
end

-- The summary to take: the one that is not by grid and block, where there are both.
local function choose(path, found)
  local plain, by_grid = {}, {}
  for _, summary in ipairs(found) do
    local kind = (summary.header.grid or summary.header.block) and by_grid or plain
    kind[#kind + 1] = summary
  end
  local candidates = #plain > 0 and plain or by_grid
  if #candidates == 0 then return nil, no_summary:format(path) end
  if #candidates > 1 then
    return nil, ("%s:%d: a second kernel summary, after that of line %d; one in a file would be right")
      :format(path, candidates[2].line, candidates[1].line)
  end
  if #candidates[1].kernels == 0 then
    return nil, ("%s:%d: a kernel summary without a kernel"):format(path, candidates[1].line)
  end
  return candidates[1].kernels
end

-- The kernels in the CSV file at `path`, or nil, message.
function csv.read(path)
  local text, message = file.read(path)
  if not text then return nil, message end
  local head = text:sub(1, 2)
  if head == "\xFF\xFE" or head == "\xFE\xFF" then return nil, path .. ": is UTF-16; save it as UTF-8" end
  if text:sub(1, 3) == "\xEF\xBB\xBF" then text = text:sub(4) end
  local found, problem, line = scan(text)
  if not found then return nil, ("%s:%d: %s"):format(path, line, problem) end
  return choose(path, found)
end

return csv
