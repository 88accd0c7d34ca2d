-- gentables workload: steps of a training-like workload, GEMMs and collectives that overlap, over channels
-- and threads. verbs/workload/list.lua has the commands; each is a file of verbs/workload/ in the form of a
-- verb.
return require("base.commands").of("workload", require "verbs.workload.list")
