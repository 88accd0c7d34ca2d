-- The launches of `gentables tune`, on the host and on GPUs. The bench lists its candidates; each plug-in is
-- tried in processes of its own; then all candidates are measured together, in one pass over all cells. If
-- one fails there, it is left out, and the group starts again without it and without that launch's times.
local answers = require "tune.answers"
local backends = require "conversation.backends"
local child_process = require "system.child_process"
local fail = require "base.fail"
local file = require "core.file"
local hosts = require "conversation.hosts"
local launcher = require "conversation.launcher"
local lists = require "lists.lists"
local numbers = require "base.numbers"
local ordering = require "base.ordering"
local pass_input = require "tune.pass_input"
local protocol = require "conversation.protocol"
local quantities = require "base.quantities"
local sanitizer = require "tune.sanitizer"
local rank_placement = require "lists.rank_placement"
local scratch = require "system.scratch"
local sequences = require "base.sequences"
local epilogue_ways = require "tune.epilogue_ways"

local rank_group = {}

local GRACE, START_S = 10, 60 -- seconds beyond its calls, for the end and for the start of a launch
local SLOWER = 4 -- times the deadline under compute-sanitizer

-- In a trial no thread of the C library caches freed memory, so that the heap can be counted.
local EXACT_HEAP = "glibc.malloc.tcache_count=0"

-- Appends the options that load libraries to a command line.
local function with_plugins(argv, plugins)
  for _, path in ipairs(plugins) do table.move({ "--plugin", path }, 1, 2, #argv + 1, argv) end
  return argv
end

-- Starts a program and reads all its lines: on_line(kind, fields, line); kind is nil for lines that are not
-- of the protocol. `input`: for its stdin, or nil. Returns nil if it ended well, else the reason; and its
-- stderr.
local function follow(job, argv, seconds, on_line, input)
  local ran = launcher.run(argv, { silence = seconds, grace = GRACE, input = input, on_line = function(line)
    local kind, fields = protocol.parse(line)
    if not kind then answers.check_text(job, line) end
    on_line(kind, fields, line)
  end })
  if ran.problem == "start" then return "cannot be started: " .. ran.reason, "" end
  return not ran.well and ran.reason or nil, ran.errors
end

-- Logs of libraries are on stderr, too, between messages of ranks.
local LOG = "gentables%-bench: log of ([^\n]-, rank %d+: [^\n]*)"

-- Prints each line of a log once, even if a launch is repeated; returns the text without them.
local function print_logs(job, words)
  job.logged = job.logged or {}
  for line in (words or ""):gmatch(LOG) do
    if not job.logged[line] then job.progress:print("gentables: " .. line) end
    job.logged[line] = true
  end
  return ((words or ""):gsub(LOG, ""))
end

-- ---- candidates -------------------------------------------------------------------------------

-- All candidates with these libraries, by name and in order, { name, plugin, usual, ops, parameters }, and a
-- hash of the libraries; or nil and why not.
local function read_candidates(job, plugins)
  local candidates, hash = {}, nil
  local seconds = math.min(START_S, job.timeout)
  local reason, words = follow(job, with_plugins({ job.program, "--candidates" }, plugins), seconds,
    function(kind, fields, line)
      if kind == "libraries" then hash = answers.libraries(job, fields, line) end
      if kind ~= "candidate" then return end
      local row = answers.candidate(job, candidates, fields, line)
      candidates[#candidates + 1], candidates[row.name] = row, row
    end)
  if not reason and not hash then reason = "it ended without an answer" end
  if not reason then return candidates, hash end
  local message = words:match("gentables%-bench: ([^\n]+)")
  return nil, message or ("%s: %s"):format(plugins[#plugins] or job.program, reason)
end

-- The names of a library's own candidates: those that are not in `before`. The bench makes others of these.
local function own_names(candidates, before)
  local names = {}
  for _, row in ipairs(candidates) do
    if row.plugin and row.usual and not before[row.name] then names[row.name] = true end
  end
  return names
end

-- A path without a file is wrong use, not a fault of a plug-in.
local function check_path(path)
  if not path:find("/", 1, true) then fail.input("--plugin %s: name it with a slash, as ./%s", path, path) end
  if not file.exists(path) then fail.input("--plugin %s: there is no such file", path) end
end

-- The candidates of ours and of all plug-ins, and a hash of the libraries. Each plug-in is loaded in a
-- process with those before it, so that a name that exists already is found. Plug-ins that answer are in
-- job.plugins, their candidates in job.owned. A plug-in with an invalid answer, or that crashes or hangs, is
-- left out.
function rank_group.candidates(job)
  for _, path in ipairs(job.plugins) do check_path(path) end
  local candidates, hash = read_candidates(job, {})
  if not candidates then fail.input("%s", hash) end
  local answering = {}
  job.owned = {}
  for _, path in ipairs(job.plugins) do
    answering[#answering + 1] = path
    local more, answer = read_candidates(job, answering)
    if more then
      job.owned[path] = own_names(more, candidates)
      candidates, hash = more, answer
    else
      answering[#answering] = nil
      job.excluded[path] = answer
      job.progress:print(("gentables: %s; it is left out"):format(answer))
    end
  end
  job.plugins = answering
  return candidates, hash
end

-- ---- failures ---------------------------------------------------------------------------------

-- The candidate that the last messages of ranks name, and what it did. The message about one that crashed
-- counts before those of ranks that wait for it.
local function culprit(words)
  local name, what
  for found, did in words:gmatch("gentables%-bench: [^\n]-strategy ([%w_]+): ([^\n]+)") do
    local waits = did:find("in time", 1, true)
    if not name or not waits then name, what = found, did end
    if not waits then break end
  end
  return name, what
end

-- Why a program ended for `reason`: the bench's message, or its launcher's about a node, or the last line
-- that the launcher printed.
local function last_words(words, reason)
  local message = words:match("gentables%-bench: ([^\n]+)") or launcher.lost_node(words)
  if message then return message end
  local last = child_process.last_line(words)
  return ("%s; %s"):format(reason, last and "last line: " .. last or "it printed no message")
end

-- Leaves a candidate out from here on, and prints why.
local function exclude(job, world_size, name, reason)
  job.excluded[name], job.excluded_at[name] = reason, world_size
  job.progress:print(("gentables: %s: %s; it is left out"):format(name, reason))
end

-- ---- launches ---------------------------------------------------------------------------------

-- Sets the requests of each cell: its candidates that are not excluded, and of these those in the set `only`
-- (nil: all). Returns the cells that have any.
local function request(job, cells, only)
  for _, cell in ipairs(cells) do
    cell.requested = sequences.filter(cell.candidates, function(name)
      return not job.excluded[name] and (not only or only[name])
    end)
    cell.requests = only and { { fusion = cell.fusion, names = cell.requested } }
      or epilogue_ways.requests(job, cell, cell.requested)
  end
  return sequences.filter(cells, function(cell) return #cell.requested > 0 end)
end

local function with_exact_heap()
  local set = os.getenv("GLIBC_TUNABLES")
  return { "env", "GLIBC_TUNABLES=" .. (set and set ~= "" and set .. ":" or "") .. EXACT_HEAP }
end

-- The facts of a job that a backend needs for its options.
local function setting(job, cells)
  local largest, all = 0, 0
  for _, cell in ipairs(cells) do
    largest = math.max(largest, cell.size)
    all = all + #cell.requests * cell.size
  end
  return { launcher = job.launcher, arch = job.arch, plugins = job.plugins, all_bytes = all,
    spec = { limits = { message_bytes = largest } } }
end

-- A trial is on this node, with as many ranks as a node may have; a pass is on the given ones. `under`: the
-- words of a program that runs the bench, or nil.
local function launch(job, world_size, kind, cells, plugins, seed, on_line, under)
  local nodes = kind == "pass" and job.nodes or 1
  local is_here = kind ~= "pass" or nodes == 1 and not job.hosts
  local folder <close> = scratch.folder("gentables-tune-pass")
  local input, input_path = pass_input.text(job, cells, seed, nodes), "-"
  if is_here then -- else rank 0 may be on another node, without this file
    input_path = folder.path .. "/input"
    fail.unless(file.write(input_path, input))
  end
  local backend = backends[job.backend]
  local ranks = kind == "pass" and world_size or math.min(world_size, lists.most_ranks_per_node)
  local over = { nodes = nodes, ranks_per_node = ranks // nodes }
  local argv = backend.command(job, ranks, hosts.over(over, not is_here and job.hosts or nil))
  -- The heap is counted on the host only: the driver of a GPU allocates at any time.
  local before = kind == "trial" and job.backend == "host" and with_exact_heap() or {}
  argv = sequences.append(sequences.append(before, argv), under or {})
  local timeout = (under and SLOWER or 1) * job.timeout
  sequences.append(argv, { job.program, "--" .. kind, input_path, "--timeout", tostring(timeout) })
  sequences.append(argv, backend.arguments(setting(job, cells), ranks))
  local reason, words = follow(job, with_plugins(argv, plugins), timeout + START_S, on_line,
    not is_here and input .. "end\n" or nil)
  return reason, print_logs(job, words)
end

-- Prints the notes of a trial about a candidate that has not failed in it. `untried`: bytes, or nil.
local function print_untried(job, fields, untried)
  local about
  if fields.status == "uncalled" then
    about = ("was not called in its trial: %s"):format(fields.reason)
  elseif untried then
    about = ("was not tried with %s and more: not enough memory"):format(quantities.exact_bytes(untried))
  end
  if about then job.progress:print(("gentables: %s: %s"):format(fields.strategy, about)) end
end

-- Tries the plug-in at `path`, which has these candidates; again after each failure, until the rest passes.
local function try_plugin(job, world_size, cells, path, names)
  while true do
    local requested = request(job, cells, names)
    if #requested == 0 then return end
    local failed = {}
    job.progress:show("trial of " .. path)
    local function on_line(kind, fields, line)
      if kind == "progress" then job.progress:show(("trial of %s: %s calls"):format(path, fields.done)) end
      if kind ~= "trial" then return end
      print_untried(job, fields, answers.trial(job, fields, line))
      if fields.status == "failed" then failed[fields.strategy] = fields.reason end
    end
    local reason, words = launch(job, world_size, "trial", requested, { path }, 1, on_line)
    for name, why in pairs(failed) do exclude(job, world_size, name, why) end
    if not reason then return end
    local name, what = culprit(words)
    if not job.candidates[name or ""] or job.excluded[name] then
      for each in pairs(names) do
        local why = ("its trial ended: %s"):format(last_words(words, reason))
        if not job.excluded[each] then exclude(job, world_size, each, why) end
      end
      return
    end
    exclude(job, world_size, name, what)
  end
end

-- Tries the candidates that passed once more, briefly, under compute-sanitizer's memcheck. An error that it
-- reports excludes the rest of the plug-in, because it names a kernel and no candidate; any other failure
-- under it is printed and excludes nothing.
local function look_closer(job, world_size, cells, path, names)
  local requested = request(job, cells, names)
  if not job.sanitizer or #requested == 0 then return end
  local report, failed = sanitizer.report(), nil
  job.progress:show("compute-sanitizer with " .. path)
  local function on_line(kind, fields, line)
    report:take(line)
    if kind == "trial" then answers.trial(job, fields, line) end
    if kind == "trial" and fields.status == "failed" then
      failed = ("%s: %s"):format(fields.strategy, fields.reason)
    end
  end
  local reason = launch(job, world_size, "brief-trial", requested, { path }, 1, on_line,
    sanitizer.words(job.sanitizer))
  local found, why, always = report:verdict(reason or failed)
  if found then
    job.progress:print(("gentables: %s: compute-sanitizer: %s; it is left out"):format(path, found))
    for name in pairs(names) do
      job.excluded_at[name] = job.excluded[name] and job.excluded_at[name] or world_size
      job.excluded[name] = job.excluded[name] or "compute-sanitizer: " .. found
    end
  elseif why then
    if always then job.sanitizer = nil end
    job.progress:print(("gentables: %s: compute-sanitizer could not check it: %s"):format(path, why))
  end
end

-- The candidates of a plug-in that are not left out.
local function living_names(job, path)
  return sequences.filter(ordering.sorted_keys(job.owned[path]), function(name)
    return not job.excluded[name]
  end)
end

-- The plug-ins that have a candidate left; the others are not loaded.
local function living(job)
  return sequences.filter(job.plugins, function(path) return #living_names(job, path) > 0 end)
end

local function words_of(job, world_size, number, fields)
  local calls = fields and fields.of ~= "0" and (", %s of %s calls"):format(fields.done, fields.of) or ""
  return ("%s: launch %d of %d%s"):format(rank_placement.words(world_size, job.nodes), number, job.launches,
    calls)
end

-- Shows a launch's line of progress. Its calls are in random order, so their rate is steady.
local function show_pass(job, text, fields)
  job.progress:within(numbers.whole(fields.done, 0) or 0, numbers.whole(fields.of, 0) or 0, text)
end

-- Adds the results of a launch that ended well to the cell. A candidate without a time in one launch has
-- none; its reason is kept once.
local function keep(cell)
  sequences.append(cell.results, cell.fresh)
  local has = {}
  for _, entry in ipairs(cell.no_time) do has[entry.strategy .. " " .. entry.epilogue] = true end
  for _, entry in ipairs(cell.fresh_no_time) do
    if not has[entry.strategy .. " " .. entry.epilogue] then table.insert(cell.no_time, entry) end
  end
end

-- Leaves out the candidate that the last messages of the group name. A plug-in's init and end run in the
-- group as long as it has a candidate; if an excluded candidate is named, the rest of its plug-in is left
-- out, too. Returns false if no candidate is left out.
local function exclude_culprit(job, world_size, name, what)
  if not job.candidates[name or ""] then return false end
  local rest = not job.excluded[name] and { name } or {}
  for _, path in ipairs(#rest == 0 and living(job) or {}) do
    if job.owned[path][name] then
      rest, what = living_names(job, path), "its plug-in: " .. what
    end
  end
  table.sort(rest)
  for _, each in ipairs(rest) do exclude(job, world_size, each, what) end
  return #rest > 0
end

-- One launch of the group, repeated without each candidate that fails there. Returns nil, or why nothing can
-- be measured.
local function run_group(job, world_size, cells, number)
  while true do
    local requested = request(job, cells)
    if #requested == 0 then return "no candidate is left" end
    for _, cell in ipairs(requested) do cell.fresh, cell.fresh_no_time = {}, {} end
    local pass = answers.of_pass(job, requested)
    local function on_line(kind, fields, line)
      pass:take(kind, fields, line)
      if kind == "progress" then show_pass(job, words_of(job, world_size, number, fields), fields) end
    end
    job.progress:show(words_of(job, world_size, number))
    local reason, words = launch(job, world_size, "pass", requested, living(job), number, on_line)
    if not reason then
      pass:finish()
      job.cost = pass.cost
      for _, cell in ipairs(requested) do
        epilogue_ways.complete(job, cell)
        keep(cell)
      end
      return nil
    end
    if not exclude_culprit(job, world_size, culprit(words)) then
      return ("the group failed: %s"):format(last_words(words, reason)),
        launcher.lost_node(words) and "the group failed: a node is not reachable" or nil
    end
  end
end

-- Tries all plug-ins, one after the other.
local function try_plugins(job, world_size, cells)
  for _, path in ipairs(job.plugins) do
    try_plugin(job, world_size, cells, path, job.owned[path])
    look_closer(job, world_size, cells, path, job.owned[path])
  end
end

-- Measures cells at one number of ranks. Returns nil, or why nothing could be measured: for the terminal, and
-- for files, without names of hosts.
function rank_group.measure(job, world_size, cells)
  try_plugins(job, world_size, cells)
  for number = 1, job.launches do
    local problem, reason = run_group(job, world_size, cells, number)
    if problem then return problem, reason or problem end
    job.progress:step()
  end
end

return rank_group
