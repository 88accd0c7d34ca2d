-- gentables trace: reports, comparisons and merged timelines of profiler traces. verbs/trace/list.lua has the
-- commands; each is a file of verbs/trace/ in the form of a verb.
return require("base.commands").of("trace", require "verbs.trace.list")
