-- gentables workload: steps of a training-like workload, GEMMs and collectives that overlap, over channels
-- and threads. What can be asked for is verbs/workload/list.lua; each command is a file of workload/ that
-- looks like a verb's.
return require("base.commands").of("workload", require "verbs.workload.list")
