-- The commands of gentables workload, one row each: name and one line of help; the file is workload/NAME.lua,
-- which returns a verb's table (see verbs.lua).
return {
  { name = "run", help = "one configuration, as a table" },
  { name = "sweep", help = "over channels and threads, traced, in the documented tree" },
  { name = "report", help = "analysis of a sweep: variance, overlap, pictures, merged traces, a page" },
  { name = "pipeline", help = "sweep, and then report" },
  { name = "compare", help = "two sweeps or more in one page" },
  { name = "show", help = "the GEMMs and collectives of a step, without measuring" },
}
