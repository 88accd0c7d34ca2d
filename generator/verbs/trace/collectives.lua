-- gentables trace collectives: collectives over all ranks of a configuration, and over configurations.
local example_of = require("trace.runs.example").of
local configuration_report = require "trace.collectives.configuration_report"
local communication = require "lists.communication"
local digest_folder = require "trace.digests.digest_folder"
local job = require "trace.runs.job"
local nodes = require "trace.collectives.nodes"

local command = {}

function command.run(args)
  local out, work = job.out_of(args, "trace collectives"), job.new(args)
  local usable, made = work:usable(), {}
  local answers = work:read(usable, configuration_report.of)
  for _, configuration in ipairs(usable) do
    local list, notes = configuration_report.sheets(configuration, answers, args.gpus_per_node)
    for _, note in ipairs(notes) do work:note(configuration, note) end
    if #list > 0 then
      work:save(list, configuration_report.base(out, configuration))
      made[#made + 1] = { configuration = configuration, sheets = list }
    elseif configuration_report.is_read(configuration, answers) then
      work:fail(("%s: no collective: %s"):format(configuration.folder, communication.NONE), 1)
    end
  end
  local across = configuration_report.across(made)
  if across then work:save({ across }, configuration_report.across_base(out)) end
  return work:finish()
end

command.summary = "Collectives over ranks: latency, wait, skew, bandwidths, stragglers."
command.positional = job.positional
command.options = job.options({
  { name = "out", value = "DIR", without = { "json" }, help = "folder of the reports" }, job.json,
  nodes.option,
}, true)
command.example = example_of "trace collectives {SWEEP} --out collectives"

return digest_folder.command(command)
