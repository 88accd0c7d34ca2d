-- Whether a run obeyed a file: compares what the file asks (asked.lua) with what ran (watched_run.lua).
--
-- verdict.check_read(of, run) raises if a rank did not read the file. verdict.of(of, run) sets `asked` and
-- `obeyed` of each cell, and returns { obeyed, not_obeyed, own }: numbers of cells; `own` counts those that
-- the file leaves to the library. verdict.print(of, run, counts) prints them. verdict.is_proof(of, counts):
-- whether the file is obeyed, and in one cell at least if it has rules.
local fail = require "base.fail"
local ompi = require "formats.ompi"
local quantities = require "base.quantities"
local sequences = require "base.sequences"

local verdict = {}

-- The name and the version of a library, from MPI_Get_library_version's first line.
local function name_and_version(library)
  local version = library:match("^Open MPI v(%d[%w.]*)")
  if version then return "Open MPI", version end
  if library:find("^MPICH") then return "MPICH", library:match("(%d[%w.]*)%s*$") or "" end
  return fail.cut(library, 60), ""
end

-- "Open MPI 4.1.4"
function verdict.library(run) return ("%s %s"):format(name_and_version(run.library)) end

-- ---- is it read ---------------------------------------------------------------------------------

-- Raises if the program's library is another one, or one of a version that does not read these rules.
local function check_library(of, run)
  local name, version = name_and_version(run.library)
  if name ~= of.library then
    fail.input("%s: is for %s, and the program runs under %s", of.path, of.library, verdict.library(run))
  elseif of.rules and not ompi.reads(of.rules, version) then
    local known = ompi.versions[of.rules]
    fail.input("%s: %s, and this is %s; %s is required", of.files[#of.files], known.words,
      verdict.library(run), known.instead)
  end
end

-- The number of ranks that opened the file with this number.
local function readers_of(run, number)
  return #sequences.filter(run.ranks, function(rank) return rank.opened[number] end)
end

function verdict.check_read(of, run)
  check_library(of, run)
  local without = #run.ranks - readers_of(run, 1)
  if without > 0 then
    fail.input("%s: not read by %d of %s; options of the command and variables OMPI_MCA_* or MPIR_CVAR_* " ..
      "that name another file, or turn the rules off, come first", of.path, without,
      quantities.counted(#run.ranks, "rank"))
  end
  without = of.named and #run.ranks - readers_of(run, 2) or 0
  if without > 0 and of.named:find("^/") then
    fail.input("%s: its rules %s are not read by %d of %s; other options name other rules", of.path, of.named,
      without, quantities.counted(#run.ranks, "rank"))
  elseif without > 0 then
    fail.input("%s: its rules %s are not read, because it names them without a folder and ranks start in " ..
      "another one; gentables generate --install-prefix DIR writes copies that work in any folder", of.path,
      of.named)
  end
end

-- Whether any rank opened the file.
function verdict.is_read(run) return readers_of(run, 1) > 0 end

-- ---- is it obeyed ---------------------------------------------------------------------------------

function verdict.of(of, run)
  local counts = { obeyed = 0, not_obeyed = 0, own = 0 }
  for _, cell in ipairs(run.cells) do
    cell.asked = of.algorithm(cell.ranks, cell.bytes)
    if cell.asked then
      cell.obeyed = sequences.all(cell.ran, function(ran) return ran.algorithm == cell.asked end)
    end
    local count = cell.asked == nil and "own" or cell.obeyed and "obeyed" or "not_obeyed"
    counts[count] = counts[count] + 1
  end
  return counts
end

-- Whether the file has rules that decide about none of the cells.
local function decides_nothing(of, counts) return of.decides and counts.obeyed + counts.not_obeyed == 0 end

function verdict.is_proof(of, counts) return counts.not_obeyed == 0 and not decides_nothing(of, counts) end

-- Whether an algorithm of what obeys the file was seen in any call.
local function sees_algorithms(of, run)
  return sequences.any(run.cells, function(cell)
    return sequences.any(cell.ran, function(ran)
      return ran.algorithm and (of.decider ~= "UCC" or ran.algorithm:find("^ucc_"))
    end)
  end)
end

-- What ran in a cell: "ring", "ring as recursive_doubling", "ring (3 calls), nonoverlapping (1 call)".
local function ran_in(cell)
  return table.concat(sequences.map(cell.ran, function(ran)
    local name = (ran.algorithm or "not seen") .. (ran.inner and " as " .. ran.inner or "")
    return #cell.ran > 1 and ("%s (%s)"):format(name, quantities.counted(ran.calls, "call")) or name
  end), ", ")
end

-- Prints rows of texts in columns; the first ones, of numbers, are right-aligned.
local function print_columns(rows, numbers)
  local widths = {}
  for _, row in ipairs(rows) do
    for i, text in ipairs(row) do widths[i] = math.max(widths[i] or 0, #text) end
  end
  for _, row in ipairs(rows) do
    local cells = sequences.map(row, function(text, i)
      local pad = (" "):rep(widths[i] - #text)
      return i <= numbers and pad .. text or text .. pad
    end)
    print((table.concat(cells, "  "):gsub(" +$", "")))
  end
end

local function print_cells(run)
  local rows = { { "ranks", "bytes", "calls", "asked", "ran", "" } }
  for _, cell in ipairs(run.cells) do
    local word = cell.obeyed == nil and "" or cell.obeyed and "obeyed" or "NOT OBEYED"
    rows[#rows + 1] = { tostring(cell.ranks), tostring(cell.bytes), tostring(cell.calls), cell.asked or "-",
      ran_in(cell), word }
  end
  print_columns(rows, 3)
end

-- Notes about the limits of a run.
local function note_limits(of, run)
  local size = run.ranks[1].size or 0
  if #run.ranks < size then
    fail.note("only %d of %s are on this machine, or reached MPI_Finalize", #run.ranks,
      quantities.counted(size, "rank"))
  end
  if run.unlisted > 0 then
    fail.note("%s of further sizes are not listed", quantities.counted(run.unlisted, "call"))
  end
  if not sees_algorithms(of, run) then
    local component = of.decider == "UCC" and "UCC's TL/UCP" or "coll/tuned"
    fail.note("no algorithm of %s was seen: another component of Open MPI did the calls, or this build of " ..
      "%s calls its own functions directly", component, of.decider)
  end
end

function verdict.print(of, run, counts)
  local ranks = quantities.counted(#run.ranks, "rank")
  print(("%s: read by %s of %s"):format(of.path, ranks, verdict.library(run)))
  print()
  print_cells(run)
  print()
  if of.library == "MPICH" then
    return print("MPICH does not export its algorithms, so it is not shown which of them ran.")
  end
  note_limits(of, run)
  if not of.decides then
    return print("The file names no rules, so it is only shown that it is read.")
  elseif decides_nothing(of, counts) then
    return print("nothing is proven: the file decides none of these cells, and leaves them to " .. of.decider)
  end
  print(("obeyed in %d of %s; the file leaves %d more to %s's own decision"):format(counts.obeyed,
    quantities.counted(counts.obeyed + counts.not_obeyed, "cell"), counts.own, of.decider))
end

return verdict
