-- gentables trace gemm: the GEMMs of every rank, threads and channels, in one table.
local digest_folder = require "trace.digests.digest_folder"
local example_of = require("trace.runs.example").of
local fail = require "base.fail"
local gemm_command = require "trace.gemm.gemm_command"
local job = require "trace.runs.job"
local gemm_instances = require "trace.gemm.gemm_instances"
local ordering = require "base.ordering"
local sequences = require "base.sequences"

local function reader_of(top_k)
  return function(source)
    local gemm = gemm_instances.gemm(source)
    return { rank = source:info().rank, columns = gemm.columns,
      rows = table.move(gemm.rows, 1, math.min(#gemm.rows, top_k), 1, {}) }
  end
end

-- One sheet of all traces; columns in order of first appearance.
local function sheet_of(found)
  local sheet = { name = "GEMM", columns = { "threads", "channel", "rank" }, rows = {} }
  for _, trace in ipairs(found) do ordering.add_new(sheet.columns, trace.value.columns) end
  local index_of = sequences.indices(sheet.columns)
  for _, trace in ipairs(found) do
    for _, cells in ipairs(trace.value.rows) do
      local row = { trace.entry.threads, trace.entry.channels, trace.entry.rank }
      for i, title in ipairs(trace.value.columns) do row[index_of[title]] = cells[i] end
      sheet.rows[#sheet.rows + 1] = row
    end
  end
  return sheet
end

local function run(args)
  local out, work = job.out_of(args, "trace gemm"), job.new(args)
  local usable = work:usable()
  local answers = work:read(usable, reader_of(args.top_k or math.maxinteger))
  local found = gemm_command.found(usable, answers)
  local sheet = sheet_of(found)
  if #found > 0 and #sheet.rows == 0 then fail.work(gemm_command.no_gemm) end
  if #found > 0 then work:save({ sheet }, out .. "/gemm") end
  return work:finish()
end

return digest_folder.command {
  summary = "The GEMMs of every rank, threads and channels: shapes, times, TFLOP/s.",
  positional = job.positional,
  options = job.options({
    { name = "out", value = "DIR", without = { "json" }, help = "folder of the table" }, job.json,
    { name = "top-k", value = "K", type = "whole",
      help = "only the K of each trace with the largest sum of times" },
  }, true),
  example = example_of "trace gemm {SWEEP} --ranks 0 --out gemm",
  run = run,
}
