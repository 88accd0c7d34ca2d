-- Man pages of the program, and of each verb and command, from their declarations.
local declarations = require "reference.declarations"
local help = require "reference.help"
local options = require "base.options"

local manual = {}

-- A text as roff shows it: no escapes, no ligatures of dashes, and no requests at the beginning of a line.
local function plain(text)
  return (text:gsub("\\", "\\e"):gsub("-", "\\-"):gsub("%f[^\n\0][.']", "\\&%0"))
end

local function page_name(name) return "gentables-" .. name:gsub(" ", "-") end

local function head(name, purpose)
  return { ('.TH "%s" 1 "" "gentables %s" "gentables"'):format(name:upper(), gentables.version),
    ".SH NAME", plain(name) .. " \\- " .. plain(purpose) }
end

local function lines_of(text)
  local lines = {}
  for line in (text .. "\n"):gmatch("(.-)\n") do lines[#lines + 1] = line end
  return lines
end

-- An option or argument, its explanation with line breaks, and its other names.
local function add_item(out, name, text, aliases)
  out[#out + 1] = ".TP\n.B " .. plain(name)
  for i, line in ipairs(lines_of(text)) do
    if i > 1 then out[#out + 1] = ".br" end
    out[#out + 1] = plain(line:match("^ *(.*)$"))
  end
  local others = {}
  for i, alias in ipairs(aliases or {}) do others[i] = plain("--" .. alias) end
  if #others > 0 then out[#out + 1] = ".br\nAlso " .. table.concat(others, ", ") .. "." end
end

-- Lines that are shown as they are.
local function add_verbatim(out, title, text)
  out[#out + 1] = (".SH %s\n.nf\n%s\n.fi"):format(title, plain(text))
end

local function add_rows(out, title, rows, prefix)
  out[#out + 1] = ".SH " .. title
  for _, row in ipairs(rows) do
    out[#out + 1] = (".TP\n.BR %s (1)\n%s"):format(plain(page_name(prefix .. row.name)), plain(row.help))
  end
end

-- The page of a verb or command, as declarations.of has it.
local function page_of(of)
  local out = head(page_name(of.name), of.help)
  if of.commands then
    add_verbatim(out, "SYNOPSIS", ("gentables %s COMMAND [options]"):format(of.name))
    add_rows(out, "COMMANDS", of.commands, of.name .. " ")
    return out
  end
  local verb, positional = of.verb, of.verb.positional
  add_verbatim(out, "SYNOPSIS", help.usage(verb, of.name))
  out[#out + 1] = ".SH DESCRIPTION\n" .. plain(verb.summary)
  local has_options = verb.options and #verb.options > 0
  if has_options or positional and positional.help then out[#out + 1] = ".SH OPTIONS" end
  if positional and positional.help then add_item(out, positional.name, positional.help) end
  for _, option in ipairs(verb.options or {}) do
    add_item(out, help.spelling(option), help.explanation(option), options.aliases(verb, option))
  end
  if verb.example then add_verbatim(out, "EXAMPLES", (verb.example:gsub("\n +", "\n"))) end
  return out
end

-- The page of the program.
local function main_page(list, groups)
  local out = head("gentables", "the fastest way of each collective, measured, as tables")
  add_verbatim(out, "SYNOPSIS", "gentables VERB [options]")
  for _, group in ipairs(groups) do
    local rows = {}
    for _, row in ipairs(list) do
      if (row.group or groups[#groups].name) == group.name then rows[#rows + 1] = row end
    end
    add_rows(out, group.help:upper(), rows, "")
  end
  out[#out + 1] = ".SH ENVIRONMENT"
  for _, row in ipairs(help.environment) do add_item(out, row.name, row.help) end
  out[#out + 1] = ".SH EXIT STATUS\n0: done. 1: a difference, or a failure. 2: wrong use, unreadable "
    .. "input, or a machine that lacks a required part."
  return out
end

-- All pages: a list of { file, text }.
function manual.pages(verbs)
  local pages = {}
  local function add(name, lines)
    pages[#pages + 1] = { file = name .. ".1", text = table.concat(lines, "\n") .. "\n" }
  end
  add("gentables", main_page(verbs.list, verbs.groups))
  for _, of in ipairs(declarations.of(verbs.list)) do add(page_name(of.name), page_of(of)) end
  return pages
end

return manual
