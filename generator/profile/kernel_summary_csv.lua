-- Kernel summaries as CSV: exports of Nsight Systems' GUI (each field with its unit, 383.682 us), and the
-- output of `nsys stats --report cuda_gpu_kern_sum --format csv` (units in the header). kernel_summary.lua
-- describes the result.
--
-- Lines before the header, and other reports in the same file, are skipped. This file selects lines and
-- columns; kernel_fields.lua reads their fields.
local csv = require "core.csv"
local fail = require "base.fail"
local file = require "core.file"
local kernel_fields = require "profile.kernel_fields"
local sequences = require "base.sequences"

local kernel_summary_csv = {}

-- The content of a column, by its name in any version of nsys. A header with another name is of another
-- report.
local columns = { ["time"] = "share", ["total time"] = "total_ns", ["instances"] = "instances",
  ["avg"] = "avg_ns", ["average"] = "avg_ns", ["med"] = "med_ns", ["median"] = "med_ns", ["min"] = "min_ns",
  ["minimum"] = "min_ns", ["max"] = "max_ns", ["maximum"] = "max_ns", ["stddev"] = "std_ns",
  ["gridxyz"] = "grid", ["blockxyz"] = "block", ["name"] = "name" }

local times = { "total_ns", "avg_ns", "med_ns", "min_ns", "max_ns", "std_ns" }

-- The kind of a column for kernel_fields.row.
local kinds = { instances = "count", name = "name", share = "skip", grid = "skip", block = "skip" }
for _, time in ipairs(times) do kinds[time] = "time" end

local required = { "total_ns", "instances", "avg_ns", "min_ns", "max_ns", "name" }

local no_summary = "%s: has no CUDA GPU kernel summary; valid: the GUI's export of one, "
  .. "nsys stats --report cuda_gpu_kern_sum --format csv, or nsys export --type sqlite"

-- "Total Time (ns)" -> the content, and its unit or nil.
local function parse_title(title)
  title = title:gsub("[\u{A0}%s]+", " "):lower()
  local name, unit = title:match("^ ?(.-) ?%((.-)%) ?$")
  return columns[name or title:match("^ ?(.-) ?$")], unit
end

-- The indices of a header's columns by their content, and their units; nil if it is of another report.
local function parse_titles(fields)
  local indices, units = {}, {}
  for index, title in ipairs(fields) do
    local what, unit = parse_title(title)
    if not what or indices[what] then return nil end
    indices[what], units[what] = index, unit
  end
  for _, what in ipairs(required) do
    if not indices[what] then return nil end
  end
  return indices, units
end

-- The format of the rows under this header, { what, kinds, exponents } by column; nil if the line is not the
-- header of a kernel summary; nil, message if it cannot be read.
local function parse_header(line)
  if not line:find("Total Time", 1, true) then return nil end
  local fields = csv.fields(line)
  local indices, units = parse_titles(fields or {})
  if not indices then return nil end
  local header = { what = {}, kinds = {}, exponents = {}, count_index = indices.instances,
    by_grid = (indices.grid or indices.block) ~= nil }
  -- Before 2021 only the total had a unit, or no column had one: all were nanoseconds.
  local default = units.total_ns or (fields[indices.avg_ns]:find("Average", 1, true) and "ns")
  for what, index in pairs(indices) do
    header.what[index], header.kinds[index] = what, kinds[what]
    local unit = kinds[what] == "time" and (units[what] or default)
    if unit then
      header.exponents[index] = kernel_fields.exponent(unit)
      if not header.exponents[index] then
        return nil, ("column %q has an unknown unit; valid: ns, us, ms, s"):format(fields[index])
      end
    end
  end
  return header
end

-- The standard deviation of two samples together, from that of each: the squares within and between them.
local function pooled_std(a, b)
  if not a.std_ns or not b.std_ns then return nil end
  local count = a.instances + b.instances
  local between = (a.avg_ns - b.avg_ns) ^ 2 * a.instances * b.instances / count
  local within = (a.instances - 1) * a.std_ns ^ 2 + (b.instances - 1) * b.std_ns ^ 2
  return math.sqrt((within + between) / (count - 1))
end

-- Adds `other`, a row of the same kernel, as in summaries by grid and block. Medians cannot be added.
local function add_up(kernel, other)
  local count = kernel.instances + other.instances
  kernel.std_ns = pooled_std(kernel, other)
  kernel.avg_ns = (kernel.avg_ns * kernel.instances + other.avg_ns * other.instances) / count
  kernel.med_ns = nil
  kernel.total_ns = kernel.total_ns + other.total_ns
  kernel.min_ns = math.min(kernel.min_ns, other.min_ns)
  kernel.max_ns = math.max(kernel.max_ns, other.max_ns)
  kernel.instances = count
end

-- Lines that nsys writes between two reports if both of its streams go to one file.
local function is_notice(line)
  return line:find("^Processing %[") or line:find("^Generating ") or line:find("^SKIPPED") or
    line:find("^%s*%*%*") or line:find("^NOTICE")
end

-- Whether a line has the shape of a row: as many fields as the header, with a number of calls.
local function looks_like_row(line, header)
  local fields = csv.fields(line)
  return fields and #fields == #header.kinds and fields[header.count_index]:find("^%d")
end

-- Whether a line that cannot be read as a row ends the summary: a notice, the header of another report, or,
-- after an empty line, any line without the shape of a row. Any other line is an error.
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
  if same then return add_up(same, kernel) end
  summary.by_name[kernel.name] = kernel
  summary.kernels[#summary.kernels + 1] = kernel
end

-- The lines of `text` without their ends. Plain searches: patterns look at every byte.
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
      kernel, message = kernel_fields.row(line, current.header)
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

-- The summary to take: if there are two, the one that is not by grid and block.
local function choose(path, found)
  local plain = sequences.filter(found, function(summary) return not summary.header.by_grid end)
  local summaries = #plain > 0 and plain or found
  if #summaries == 0 then fail.input(no_summary, path) end
  if #summaries > 1 then
    fail.input("%s:%d: a second kernel summary, after that of line %d; at most one is allowed", path,
      summaries[2].line, summaries[1].line)
  end
  if #summaries[1].kernels == 0 then
    fail.input("%s:%d: a kernel summary without a kernel", path, summaries[1].line)
  end
  return summaries[1].kernels
end

-- The kernels in the CSV file at `path`.
function kernel_summary_csv.read(path)
  local text = fail.unless(file.read(path))
  local head = text:sub(1, 2)
  if head == "\xFF\xFE" or head == "\xFE\xFF" then fail.input("%s: is UTF-16; save it as UTF-8", path) end
  if text:sub(1, 3) == "\xEF\xBB\xBF" then text = text:sub(4) end
  local found, problem, line = scan(text)
  if not found then fail.input("%s:%d: %s", path, line, problem) end
  return choose(path, found)
end

return kernel_summary_csv
