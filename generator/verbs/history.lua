-- gentables history: the times of earlier sweeps, and where they changed. verbs/history/list.lua has the
-- commands; each is a file of verbs/history/ in the form of a verb.
return require("base.commands").of("history", require "verbs.history.list")
