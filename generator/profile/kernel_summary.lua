-- Kernel summaries of Nsight Systems, of any source, in one form:
--
--   { kernels = { { name, total_ns, instances, avg_ns, med_ns, min_ns, max_ns, std_ns, time_pct }... },
--     total_ns }
--
-- Sources: exports of the GUI and `nsys stats` CSV (kernel_summary_csv.lua), `nsys export --type sqlite`
-- (kernel_summary_sqlite.lua). One kernel per name. med_ns and std_ns are nil if the file does not have them;
-- std_ns is that of the sample, as in nsys (n - 1; one call: 0). time_pct is computed from the totals,
-- because files round theirs to 0.1, and the errors add up over many kernels.
local fail = require "base.fail"
local file = require "core.file"

local kernel_summary = {}

local sqlite_magic = "SQLite format 3\0"

local function set_shares(kernels)
  local total_ns = 0
  for _, kernel in ipairs(kernels) do total_ns = total_ns + kernel.total_ns end
  if total_ns == 0 then return nil end
  for _, kernel in ipairs(kernels) do kernel.time_pct = kernel.total_ns / total_ns * 100 end
  return total_ns
end

-- The summary in the file at `path`. Kernels are in the order of the file; those of a database in the order
-- of nsys stats: the largest total first.
function kernel_summary.read(path)
  local is_sqlite = fail.unless(file.read(path, #sqlite_magic)) == sqlite_magic
  local reader = is_sqlite and "profile.kernel_summary_sqlite" or "profile.kernel_summary_csv"
  local kernels = require(reader).read(path)
  local total_ns = set_shares(kernels)
  if not total_ns then
    fail.input("%s: all times of its kernels are 0; a summary with times is required", path)
  end
  return { kernels = kernels, total_ns = total_ns }
end

return kernel_summary
