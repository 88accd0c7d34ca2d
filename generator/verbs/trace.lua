-- gentables trace: reports, comparisons and merged timelines of what a profiler wrote. What can be asked for
-- is verbs/trace/list.lua; each command is a file of trace/ that looks like a verb's.
return require("base.commands").of("trace", require "verbs.trace.list")
