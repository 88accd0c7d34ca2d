-- Replays chosen ops: saves each to files of its own, computes and times them, runs AMD's programs for traces
-- of AMD GPUs if they are installed, and makes the sheets.
--
--   replay_run.options(args) -> the options of the command line; the time of a budget begins here, for all
--     calls of replay_run.run with these options
--   replay_run.run(chosen, { name, ops_folder, program, backend, threads, tries_all, began, budget, patience,
--     samples, on_row }) -> sheets, summary; calls on_row(row) for each row when it is final
--   replay_run.print_summary(summary, where): prints the summary
--   replay_run.raise(summary): if a signal ended the replay, ends with that signal's exit code
--
-- `chosen` is the result of chosen_ops.lua; chosen.threads: the threads of a call, if saved ops have them.
-- summary = { ops, timed, rows, notes, problem, absent, signal = { number, name } }.
local amd = require "replay.amd"
local fail = require "base.fail"
local file = require "core.file"
local node_sheets = require "replay.node_sheets"
local process = require "core.process"
local progress = require "system.progress"
local request = require "replay.request"
local runner = require "replay.runner"
local sequences = require "base.sequences"
local system = require "core.system"
local tunableop = require "replay.tunableop"

local replay_run = { NONE_TIMED = "no op has a time; the sheet has the reasons" }

-- Limits in seconds: of an op without a budget (a call may take minutes), of a program of AMD's, and of an
-- answer after the end of the budget.
local LONGEST, BENCH_LONGEST, LATE = 900, 120, 30

-- The default minimum of samples of an op, as min_samples in op.c.
local LEAST_SAMPLES = 5

local backends = { host = true, cuda = true }

-- ---- files ---------------------------------------------------------------------------------------------

-- The files that are saved of an op, by their endings.
local function texts_of(row, threads)
  local one, out = row.op.request, {}
  if not one then return out end
  out[#out + 1] = { ".op", request.saved(one, row.id, threads) .. "\n" }
  local line = tunableop.line(one)
  if line then out[#out + 1] = { ".tunableop.csv", line .. "\n" } end
  if row.is_amd then
    local argv = amd.command(one)
    if argv then out[#out + 1] = { "." .. argv[1] .. ".txt", amd.text(argv) .. "\n" } end
  end
  return out
end

-- Writes the files of all rows: all or none. `threads`: of a call; nil: unknown.
local function save(rows, folder, threads)
  local files, lines = {}, {}
  fail.unless(file.make_folder(folder))
  for _, row in ipairs(rows) do
    for _, text in ipairs(texts_of(row, threads)) do
      files[#files + 1] = { ("%s/%s%s"):format(folder, row.id, text[1]), text[2] }
      if text[1] == ".op" then row.file = row.id .. text[1] end
      if text[1] == ".tunableop.csv" then lines[#lines + 1] = text[2] end
    end
  end
  if #lines > 0 then files[#files + 1] = { folder .. "/tunableop_untuned0.csv", table.concat(lines) } end
  fail.unless_done(file.write_all(files))
end

-- ---- rows ----------------------------------------------------------------------------------------------

local function add_note(row, text)
  if not text or text == "" then return end
  row.note = row.note == "" and text or row.note .. "; " .. text
end

local function has_amd_name(name)
  return (name:find("AMD Instinct", 1, true) or name:find("AMD Radeon", 1, true)) ~= nil
end

local function rows_of(chosen)
  local rows, device = { gemm = {}, conv = {}, all = {} }, chosen.devices[1]
  local from_amd = device and has_amd_name(device)
  for _, kind in ipairs { "gemm", "conv" } do
    for number, op in ipairs(chosen[kind]) do
      local row = { op = op, number = number, id = op.id or ("%s_%03d"):format(kind, number), note = "",
        profile_us = op.time and op.time.mean }
      row.is_amd = from_amd or (not device and op.is_amd)
      for _, note in ipairs(op.request and op.request.notes or {}) do add_note(row, note) end
      rows[kind][number] = row
      rows.all[#rows.all + 1] = row
    end
  end
  return rows
end

-- ---- replaying -----------------------------------------------------------------------------------------

-- The limits that a request adds to its op: samples, at most `most` of each kind of calls (nil: as many as
-- the full measurement has), and time.
local function limits_of(options, left, most)
  local out = {}
  if options.samples then out[1] = { "min_samples", options.samples } end
  most = most or options.samples
  if most then out[#out + 1] = { "max_samples", most } end
  if left then out[#out + 1] = { "limit_us", math.max(1, left * 1e6) } end
  return out
end

-- Adds a note to a row if an interval is empty.
local function note_intervals(row)
  local least, few = node_sheets.LEAST_SAMPLES, {}
  for _, kind in ipairs { "warm", "cold" } do
    if row.answer[kind].samples < least then few[#few + 1] = kind end
  end
  if #few == 0 then return end
  local which = #few == 1 and (" (%s)"):format(few[1]) or ""
  add_note(row, ("no 95 %% interval from fewer than %d samples%s"):format(least, which))
end

local function left_of(options) return options.budget and options.budget - (process.now() - options.began) end

-- The seconds until an answer at most; `left`: of the budget, or nil.
local function patience_of(options, left)
  if not left then return options.patience or LONGEST end
  return math.min(options.patience or math.huge, left + LATE)
end

-- The answer for a row; or nil, and why it has none.
local function request_answer(row, at, options, most)
  if not row.op.request then return nil, row.op.reason end
  if process.interrupted() then return nil, "interrupted" end
  if not at.runner then return nil, at.problem end
  local left = left_of(options)
  if left and left <= 0 then return nil, ("the budget of %g s was used up"):format(options.budget) end
  local line = request.line(row.op.request, row.id, limits_of(options, left, most))
  return at.runner:replay(line, patience_of(options, left))
end

local function fewest_samples(answer) return math.min(answer.warm.samples, answer.cold.samples) end

-- Measures a row, or measures it again: the answer with more samples counts.
local function replay_row(row, at, options, most)
  local answer, why = request_answer(row, at, options, most)
  if not answer then
    row.why_not = (row.answer and "not measured again: " or "not replayed: ") .. why
  elseif not row.answer or fewest_samples(answer) > fewest_samples(row.answer) then
    row.answer = answer
  end
end

-- The times of a row are comparable if all of the op was replayed, and the trace was computed in the same
-- type as the replay; the type in which operands are stored does not matter.
local function compare_row(row)
  local op, answer = row.op, row.answer
  if answer.computed ~= op.computed_in then
    return add_note(row, ("no difference: traced in %s, replayed in %s"):format(op.computed_in,
      answer.computed or "an unknown type"))
  end
  if answer.is_partial then return add_note(row, "no difference: a part of the op was replayed") end
  row.comparable_us = answer.warm.mean
  if op.is_converted then
    local dtype = request.value(op.request, "dtype")
    add_note(row, ("traced in %s; only the trace's time includes the conversion from %s and back"):format(
      op.computed_in, dtype))
  end
end

-- Completes a row after its last measurement.
local function finish_row(row, at, options)
  if row.answer then
    row.device = at.runner.device
    if at.is_same then compare_row(row) end
    add_note(row, row.answer.note)
    note_intervals(row)
  end
  add_note(row, row.why_not)
  if options.on_row then options.on_row(row) end
end

-- If a program is missing, the about sheet has its failure, instead of each row.
local function bench_row(row, at)
  if not row.is_amd or not row.op.request then return end
  local argv, why = amd.command(row.op.request)
  if not argv then return add_note(row, why) end
  if at.absent[argv[1]] then return end
  local us, problem = amd.run(argv, BENCH_LONGEST)
  if us then
    row.bench_us = us
    local is_same_type = row.op.computed_in == request.value(row.op.request, "dtype")
    if at.is_bench_same and is_same_type then row.comparable_bench_us = us end
  elseif problem:find("No such file", 1, true) then
    at.absent[argv[1]] = true
  else
    add_note(row, problem)
  end
end

-- Takes one sample of each kind of calls of each op. Returns the number of samples for which the rest of the
-- budget has time, estimated from these; nil: as many as the full measurement has. It is no step of the bar.
local function sample_once(rows, at, options, bar)
  local began = process.now()
  for i, row in ipairs(rows) do
    bar:show(("%s, a first look: %d of %d"):format(options.name, i, #rows))
    replay_row(row, at, options, 1)
  end
  local room = left_of(options) // (process.now() - began)
  return room < (options.samples or LEAST_SAMPLES) and math.max(2, math.tointeger(room)) or nil
end

-- Measures each op, those with the most time in the trace first. With a budget each gets one sample first,
-- and then, in the same order, as many as the budget has time for.
local function replay_all(rows, at, options)
  local bar = progress.new(#rows)
  bar:in_turn()
  if options.budget then bar:limit(options.began, options.budget) end
  local most = options.budget and sample_once(rows, at, options, bar)
  bar:show(options.name)
  for _, row in ipairs(rows) do
    if not options.budget or row.answer then replay_row(row, at, options, most) end
    if not process.interrupted() then bench_row(row, at) end
    finish_row(row, at, options)
    bar:step()
  end
  bar:clear()
end

-- ---- the about sheet -----------------------------------------------------------------------------------

local function describe_libraries(at, add)
  for _, library in ipairs(at.runner and at.runner.libraries or {}) do
    local words = {}
    for _, key in ipairs { "version", "core", "bfloat16", "workspace_mib" } do
      if library[key] then words[#words + 1] = key .. " " .. library[key] end
    end
    add(library.name, table.concat(words, ", "))
  end
  for _, why in ipairs(at.runner and at.runner.absent or { at.problem }) do add("not here", why) end
  for program in pairs(at.absent) do
    add("not here", program .. "; its command lines are in the ops' files")
  end
end

local function threads_in_words(count) return count .. (tonumber(count) == 1 and " thread" or " threads") end

local SAME_TYPE = "; empty if an op was computed in two types, or in part, with a note in its row"

local function about_differences(chosen, at)
  local traced, here = table.concat(chosen.devices, ", "), at.runner and at.runner.device or "nothing"
  if at.why_not then return "empty: " .. at.why_not end
  if at.is_same and at.runner.backend == "host" then
    return ("traced and replayed on processors of the same name, with %s a call%s"):format(
      threads_in_words(at.runner.threads), SAME_TYPE)
  end
  if at.is_same then return "traced and replayed on the same device" .. SAME_TYPE end
  if not chosen.is_traced then return "empty: no trace, so nothing to compare with" end
  if traced == "" then traced = "an unknown device" end
  return ("empty: traced on %s, replayed on %s"):format(traced, here)
end

local EMPTY = "timed as the ops, whose times include its launch; a trace's times do not. So the kernels' own "
  .. "difference is between Diff profile vs. replay and Diff without empty kernel"

local function about_of(chosen, at, summary, options)
  local about = {}
  local function add(what, value) about[#about + 1] = { what, value } end
  add("traced on", #chosen.devices > 0 and table.concat(chosen.devices, ", ") or "unknown")
  local here = at.runner
  local with = here and here.backend == "host" and ", " .. threads_in_words(here.threads) or ""
  add("replayed on", here and here.device .. with or "nothing")
  add("Diff columns", about_differences(chosen, at))
  if here and here.backend == "cuda" then add("empty kernel", EMPTY) end
  describe_libraries(at, add)
  add("ops", ("%d of %d have a time"):format(summary.timed, summary.ops))
  if options.budget then add("budget", ("%g s"):format(options.budget)) end
  local signal = summary.signal
  if signal then add("interrupted", ("by %s; times are those until then"):format(signal.name)) end
  for _, note in ipairs(chosen.notes) do add("note", note) end
  return about
end

-- ---- all of it -----------------------------------------------------------------------------------------

local function start_runner(options, threads)
  return runner.start { program = options.program, backend = options.backend, threads = threads,
    tries_all = options.tries_all, patience = options.patience }
end

-- On a processor a call is compared with one of the same number of threads: the option's, by default the
-- trace's. If they differ, at.why_not has the reason.
local function take_threads(at, chosen, options)
  local traced = chosen.multiprocessors
  if not traced then
    if options.threads then return end
    at.why_not = "the trace lacks the number of threads; give --threads-per-call"
  elseif not options.threads and tonumber(at.runner.threads) ~= traced then
    at.runner:stop()
    at.runner, at.problem = start_runner(options, tostring(traced))
  elseif tonumber(at.runner.threads) ~= traced then
    at.why_not = ("traced with %s a call, replayed with %s"):format(threads_in_words(traced),
      at.runner.threads)
  end
  at.is_same = at.runner ~= nil and not at.why_not
end

local function start(chosen, rows, options)
  local at = { absent = {} }
  local saved = chosen.threads and math.tointeger(chosen.threads)
  at.runner, at.problem = start_runner(options, options.threads or saved and tostring(saved))
  at.is_same = at.runner and #chosen.devices == 1 and chosen.devices[1] == at.runner.device or false
  if at.is_same and at.runner.backend == "host" then take_threads(at, chosen, options) end
  local function is_amd(row) return row.is_amd end
  if sequences.any(rows.all, is_amd) then
    local device = amd.device()
    at.is_bench_same = device ~= nil and device == chosen.devices[1]
  end
  return at
end

function replay_run.options(args)
  local threads = args.threads_per_call
  if args.device and not backends[args.device] then
    fail.input("--device: there is no %s; valid: host, cuda", args.device)
  end
  return { began = process.now(), budget = args.budget, samples = args.samples,
    threads = threads and tostring(threads), tries_all = args.try_all,
    backend = args.device, patience = args.timeout,
    program = args.bench or system.program():gsub("[^/]*$", "") .. "gentables-replay" }
end

-- Prints the missing parts and the number of timed ops; on stderr also the ops of the traces without a row.
function replay_run.print_summary(summary, where)
  for _, note in ipairs(summary.notes) do fail.note(note) end
  for _, why in ipairs(summary.absent) do fail.note(why) end
  if summary.problem and not summary.signal then
    fail.note(summary.problem .. "; the ops are saved, but not replayed")
  end
  print(("replayed  %s: %d of %d ops have a time"):format(where, summary.timed, summary.ops))
end

-- The signal that ended the replay, or nil.
local function caught_signal()
  local number, name = process.interrupted()
  return number and { number = number, name = name }
end

function replay_run.raise(summary)
  local signal = summary.signal
  if not signal then return end
  fail.with(128 + signal.number, "interrupted by %s; %d of %d ops have a time", signal.name, summary.timed,
    summary.ops)
end

function replay_run.run(chosen, options)
  local rows = rows_of(chosen)
  local at = start(chosen, rows, options)
  local threads = at.runner and at.runner.backend == "host" and at.runner.threads or nil
  if options.ops_folder then save(rows.all, options.ops_folder, threads) end
  replay_all(rows.all, at, options)
  if at.runner then at.runner:stop() end
  local summary = { ops = #rows.all, timed = 0, rows = rows, problem = at.problem, signal = caught_signal(),
    notes = chosen.notes, absent = at.runner and at.runner.absent or {} }
  for _, row in ipairs(rows.all) do
    if row.answer then summary.timed = summary.timed + 1 end
  end
  local about = about_of(chosen, at, summary, options)
  return node_sheets.make(rows, about), summary
end

return replay_run
