-- Collectives over all ranks of a configuration, and over configurations: the data from each trace, the
-- sheets, and their paths.
local rank_sheets = require "trace.collectives.rank_sheets"
local run_folder = require "trace.runs.run_folder"
local sequences = require "base.sequences"

local configuration_report = {}

configuration_report.SUMMARY = "nccl_summary_implicit_sync"

-- The path of a configuration's report below `out`, without its extension; in a sweep as in its tree.
function configuration_report.base(out, configuration)
  local folder, name = out, "collective"
  if configuration.threads then
    folder = ("%s/%dthread/collective_reports"):format(out, configuration.threads)
  end
  if configuration.channels then name = ("collective_%dch"):format(configuration.channels) end
  return folder .. "/" .. name
end

-- The sheets of a configuration; answers[entry] = { info, collectives } (configuration_report.of), nil
-- for traces that failed, with the message in entry.failure; gpus_per_node: of nodes.option. Also returns
-- notes on incomplete parts.
function configuration_report.sheets(configuration, answers, gpus_per_node)
  local infos, ranks = {}, {}
  for i, entry in ipairs(configuration.files) do infos[i] = answers[entry] and answers[entry].info end
  local notes, left_out = run_folder.check(configuration, infos)
  for i, entry in ipairs(configuration.files) do
    if answers[entry] and not left_out[i] then
      answers[entry].collectives.rank = entry.rank
      ranks[#ranks + 1] = answers[entry].collectives
    elseif not answers[entry] then
      notes[#notes + 1] = run_folder.not_in_report(configuration, entry, entry.failure)
    end
  end
  return rank_sheets.make(ranks, notes, gpus_per_node)
end

-- Whether at least one trace of a configuration could be read; answers: as of sheets.
function configuration_report.is_read(configuration, answers)
  return sequences.any(configuration.files, function(entry) return answers[entry] end)
end

-- The data from each trace (trace/runs/trace_source.lua).
function configuration_report.of(source)
  return { info = source:info(), collectives = rank_sheets.of(source) }
end

-- The summaries of several configurations, { { configuration, sheets }... }, as one sheet with their threads
-- and channels in front; nil if fewer than two have a summary.
function configuration_report.across(made)
  local sheet, count = nil, 0
  for _, one in ipairs(made) do
    for _, summary in ipairs(one.sheets) do
      if summary.name == configuration_report.SUMMARY then
        count = count + 1
        sheet = sheet or { name = configuration_report.SUMMARY, rows = {}, columns = {} }
        if #summary.columns + 2 > #sheet.columns then -- some have a last column more
          sheet.columns = table.move(summary.columns, 1, #summary.columns, 3, { "threads", "channels" })
        end
        for _, row in ipairs(summary.rows) do
          sheet.rows[#sheet.rows + 1] = table.move(row, 1, #summary.columns, 3,
            { one.configuration.threads, one.configuration.channels })
        end
      end
    end
  end
  return count > 1 and sheet or nil
end

-- The path of that sheet.
function configuration_report.across_base(out)
  return out .. "/comparisons/collectives_across_configurations"
end

return configuration_report
