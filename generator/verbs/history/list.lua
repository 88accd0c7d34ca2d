-- The commands of gentables history, one row each: name and one line of help; the file is history/NAME.lua,
-- which returns a verb's table (see verbs.lua).
return {
  { name = "add", help = "adds the rows of a sweep" },
  { name = "report", help = "where times changed, by how much, and which versions did: a page, Markdown" },
}
