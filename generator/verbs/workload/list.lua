-- The commands of gentables workload, one row each: name and one line of help; the file is workload/NAME.lua,
-- which returns what a verb's file returns (see verbs.lua).
return {
  { name = "run", help = "one configuration, as a table" },
  { name = "sweep", help = "over channels and threads, traced, in the documented tree" },
  { name = "report", help = "what a sweep says: variance, overlap, pictures, merged traces, a page" },
  { name = "pipeline", help = "sweep, and then report" },
  { name = "compare", help = "two sweeps or more in one page" },
  { name = "show", help = "what a workload does in a step, without measuring" },
}
