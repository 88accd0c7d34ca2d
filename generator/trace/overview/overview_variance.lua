-- The section of the page on GEMMs with varying time, from the CSVs of trace variance and trace overlap.
local columns_of = require "trace.overview.overview_columns"
local figure_sources = require "trace.overview.figure_sources"
local long_names = require "trace.overview.long_names"
local results_of = require "trace.overview.overview_results"
local sequences = require "base.sequences"
local strips = require "trace.overview.strips"

local overview_variance = {}

local named, fixed = columns_of.named, columns_of.fixed

local MOST_ROWS = 12

local function number(title) return function(row) return tonumber(row[title]) end end

-- The trace of a row: "256 threads, 28 channels, rank 0".
function overview_variance.trace_of(row)
  local parts = {}
  if row.threads ~= "" then parts[#parts + 1] = row.threads .. " threads" end
  if row.channel ~= "" then parts[#parts + 1] = row.channel .. " channels" end
  if row.rank ~= "" then parts[#parts + 1] = "rank " .. row.rank end
  return table.concat(parts, ", ")
end

-- "aten::mm 512 × 64 × 32", with M, N and K.
function overview_variance.gemm_of(row)
  local sizes = sequences.map({ "M", "N", "K" }, function(size)
    local value = row["col_param: " .. size]
    return value and value ~= "" and value or nil
  end)
  local name = long_names.short(row.col_name ~= "" and row.col_name or row.kernel_name)
  return #sizes > 0 and name .. " " .. table.concat(sizes, " × ") or name
end

-- The sheet with the most columns of a pipeline's variance files; nil: there is none.
function overview_variance.sheet(results, variance)
  if not variance then return nil end
  for _, suffix in ipairs { "_with_collective_overlap", "_with_timestamps", "" } do
    local sheet = results:sheet(variance.folder, variance.name .. suffix)
    if sheet then return sheet end
  end
end

-- The GEMMs with the largest difference, at most MOST_ROWS, and the number of all.
function overview_variance.largest(sheet)
  return results_of.largest(sheet, MOST_ROWS, number "time_diff_us")
end

local function ranges(rows)
  local longest = 0
  for _, row in ipairs(rows) do longest = math.max(longest, tonumber(row.kernel_time_max_us)) end
  if longest == 0 then longest = 1 end -- bars without a length
  return strips.of(sequences.map(rows, function(row)
    local least, most = tonumber(row.kernel_time_min_us), tonumber(row.kernel_time_max_us)
    return { name = overview_variance.gemm_of(row), text = ("%.1f to %.1f µs"):format(least, most),
      parts = { { class = "computation", from = 0, to = least / longest },
        { class = "communication", from = least / longest, to = most / longest } } }
  end))
end

-- Adds the section; variance = { folder, name (of the CSV without its suffixes), plots = paths } or nil.
function overview_variance.add(out, results, variance)
  local sheet = overview_variance.sheet(results, variance)
  if not sheet then return end
  out:section("GEMMs with varying time", { note = "Kernel time of the shortest and the longest instance of a"
    .. " GEMM of one shape; the collective that overlaps the longest one most." })
  local rows, count = overview_variance.largest(sheet)
  out:html(strips.legend { { class = "computation", text = "shortest" },
    { class = "communication", text = "longest − shortest" } })
  out:html(ranges(rows))
  out:table { columns = { named("GEMM"), "trace", fixed("shortest (µs)", 1),
    fixed("longest (µs)", 1), fixed("difference (µs)", 1),
    named("overlapping collective"), fixed("overlap (%)", 1) },
    rows = sequences.map(rows, function(row)
      local collective = row.max_overlap_collective
      return { overview_variance.gemm_of(row), overview_variance.trace_of(row),
        tonumber(row.kernel_time_min_us), tonumber(row.kernel_time_max_us), tonumber(row.time_diff_us),
        long_names.cell(collective), tonumber(row.max_overlap_percentage) }
    end) }
  if #rows < count then out:note(("%d of %d"):format(#rows, count)) end
  figure_sources.add(out, results, { sheet.path })
  if #variance.plots > 0 then figure_sources.add(out, results, variance.plots) end
end

return overview_variance
