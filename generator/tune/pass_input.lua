-- The cells of `gentables tune`, from the ops, sizes and ranks of the command line, and the input of a pass
-- with their requests, as the bench reads it (bench/protocol/pass_input.h).
--
-- A cell is { op, dtype, world_size, size (bytes), count (elements of the larger buffer), splits, fusion,
-- hidden_size, num_tokens, results = { { strategy, epilogue, time_us... }... }, no_time = { { strategy,
-- epilogue, reason }... } }.
local fail = require "base.fail"
local lists = require "lists.lists"
local numbers = require "base.numbers"
local quantities = require "base.quantities"
local sequences = require "base.sequences"
local splits = require "lists.splits"
local epilogue_ways = require "tune.epilogue_ways"
local texts = require "base.text"

local pass_input = {}

-- The end of a message about a value that is none of these names: the near one, and all.
local function among(name, names)
  return ("%s; valid: %s"):format(texts.did_you_mean(name, names), table.concat(names, ", "))
end

local MOST_BYTES = 4 << 30

-- PyTorch's ops have name spaces and an overload: _c10d_functional.all_reduce.default, c10d::allreduce_,
-- torch.distributed.all_reduce.
local function plain_name(text)
  return (text:gsub("^torch%.ops%.", ""):gsub("^torch%.distributed%.", ""):gsub("^dist%.", "")
    :gsub("^_functional_collectives%.", ""):gsub("^_?c10d[%w_]*%.", ""):gsub("^.*::", "")
    :gsub("%.default$", ""):gsub("%.out$", ""):gsub("_$", ""))
end

-- The ops that some backend measures.
pass_input.ops = sequences.filter(lists.names("ops"), function(name)
  return lists.find("ops", name).measured_by ~= nil
end)

-- The fusions with an epilogue: the first of the list has none.
pass_input.epilogues = table.move(lists.names("fusions"), 2, #lists.names("fusions"), 1, {})

-- The ops of --op that the backend measures, in the order given.
function pass_input.read_ops(args, backend)
  local ops, is_named = {}, {}
  local function find(word) return lists.find("ops", word) or lists.find("ops", plain_name(word)) end
  for _, word in ipairs(args.op) do
    local row = find(word)
    if row then is_named[row.name] = true end
  end
  for _, word in ipairs(args.op) do
    local row = find(word)
    -- PyTorch's all_to_all_single may have splits; beside an alltoallv it is the even one.
    local has_splits = row and row.name == "alltoall" and args.splits and not is_named.alltoallv
    if has_splits then row = lists.find("ops", "alltoallv") end
    if not row or not lists.contains(row.measured_by or {}, backend) then
      fail.input("--op: %s is no op that is measured here%s", word, among(word, pass_input.ops))
    end
    ops[#ops + 1] = row
  end
  if #ops == 0 then fail.input("--op: no op") end
  if args.splits and not sequences.named(ops, "alltoallv") then
    fail.input("--splits requires --op alltoallv")
  end
  return sequences.distinct(ops)
end

local function read_size(text)
  local bytes = numbers.size(text, 1, MOST_BYTES)
  if not bytes then
    fail.input("--sizes: %s is no size; a size such as 64, 16K or 4M is required, at most 4G", text)
  end
  return bytes
end

-- The sizes of --sizes, ascending.
function pass_input.read_sizes(text)
  local sizes = {}
  local first, last, factor = text:match("^([^:,]+):([^:,]+):?(%d*)$")
  if first then
    local bytes, most = read_size(first), read_size(last)
    factor = factor == "" and 2 or math.tointeger(tonumber(factor))
    if factor < 2 or bytes > most then
      fail.input("--sizes: %s; A:B with A not above B, and a factor of 2 or more, is required", text)
    end
    while bytes <= most do sizes[#sizes + 1], bytes = bytes, bytes * factor end
    return sizes
  end
  for word in (text .. ","):gmatch("([^,]*),") do sizes[#sizes + 1] = read_size(word) end
  table.sort(sizes)
  return sizes
end

local function read_splits(text)
  text = text or "2:1"
  local weights = splits.read(text)
  if not weights then fail.input("--splits: %s; %s are required", text, splits.RIGHT) end
  return text, weights
end

-- The number of elements of which the larger buffer has a multiple, as in bench/elements/traffic.c. 0: no
-- rank receives anything.
local function unit_of(op, world_size, weights)
  if op == "allreduce" or op == "broadcast" then return 1 end
  if op ~= "alltoallv" then return world_size end
  return world_size * math.max(table.unpack(splits.of_ranks(weights, world_size)))
end

local function cell_of(job, op, dtype, world_size, size, text, weights)
  local unit = unit_of(op.name, world_size, weights)
  if unit == 0 then return nil end -- note_splits has a message for it
  local count = size // dtype.bytes // unit * unit
  if count == 0 then
    job.notes[#job.notes + 1] = ("gentables: %s of %d bytes: less than one element for each of %d ranks; "
      .. "left out"):format(op.name, size, world_size)
    return nil
  end
  return { op = op.name, dtype = dtype.name, world_size = world_size, count = count,
    size = count * dtype.bytes, splits = op.splits and text or nil, results = {}, no_time = {} }
end

-- Makes the size of a cell with an epilogue a multiple of a token, at least one.
local function with_fusion(cell, fusion, hidden_size, bytes)
  cell.fusion, cell.hidden_size = fusion, hidden_size
  cell.num_tokens = math.max(1, cell.count // hidden_size)
  cell.count = cell.num_tokens * hidden_size
  cell.size = cell.count * bytes
  return cell
end

-- Notes which sizes were rounded to whole tokens, and which ops have no epilogue.
local function note_fusion(job, fusion, rounded, token_bytes)
  local without = sequences.filter(fusion and sequences.field(job.ops, "name") or {}, function(name)
    return name ~= "allreduce"
  end)
  if #without > 0 and #without == #job.ops then fail.input("--fusion requires --op allreduce") end
  if #without > 0 then
    job.notes[#job.notes + 1] = ("gentables: --fusion is of the allreduce; %s measured without"):format(
      table.concat(without, ", ") .. (#without == 1 and " is" or " are"))
  end
  local words = sequences.map(rounded, function(pair)
    return ("%s as %s"):format(quantities.exact_bytes(pair[1]), quantities.exact_bytes(pair[2]))
  end)
  if #words > 0 then
    job.notes[#job.notes + 1] = ("gentables: with an epilogue a size is of whole tokens, of %s each: %s")
      :format(quantities.exact_bytes(token_bytes), table.concat(words, ", "))
  end
end

-- Notes the weights of each number of ranks that is not the number of weights, and those that are all 0.
local function note_splits(job, text, weights)
  for _, ranks in ipairs(job.world_sizes) do
    local of_ranks = splits.of_ranks(weights, ranks)
    local words = ("gentables: --splits %s at TP %d is %s: "):format(text, ranks, table.concat(of_ranks, ":"))
    if math.max(table.unpack(of_ranks)) == 0 then
      job.notes[#job.notes + 1] = words .. "no rank receives anything; left out"
    elseif ranks ~= #weights then
      job.notes[#job.notes + 1] = words
        .. (ranks > #weights and "the weights repeat" or "the others have no rank")
    end
  end
end

-- All cells of the command line.
function pass_input.cells(job, args)
  local dtype = lists.find("dtypes", args.dtype)
  if not dtype then
    fail.input("--dtype: there is no %s%s", args.dtype, among(args.dtype, lists.names("dtypes")))
  end
  local fusion = args.fusion and lists.find("fusions", args.fusion)
  if args.fusion and (not fusion or fusion.name == "NONE") then
    fail.input("--fusion: %s is no epilogue%s; without --fusion there is none", args.fusion,
      among(args.fusion, pass_input.epilogues))
  end
  local hidden_size = args.hidden_size
  local text, weights = read_splits(args.splits)
  local cells, rounded = {}, {}
  job.notes = {}
  for _, world_size in ipairs(job.world_sizes) do
    for _, op in ipairs(job.ops) do
      for _, size in ipairs(job.sizes) do
        local cell = cell_of(job, op, dtype, world_size, size, text, weights)
        if cell and fusion and op.name == "allreduce" then
          with_fusion(cell, fusion.name, hidden_size, dtype.bytes)
          local is_first = world_size == job.world_sizes[1]
          if cell.size ~= size and is_first then rounded[#rounded + 1] = { size, cell.size } end
        end
        local before = cells[#cells]
        local same = cell and before and before.op == cell.op and before.count == cell.count
          and before.world_size == cell.world_size
        if cell and not same then cells[#cells + 1] = cell end
      end
    end
  end
  note_fusion(job, fusion, rounded, hidden_size * dtype.bytes)
  if args.splits then note_splits(job, text, weights) end
  if #cells == 0 then fail.input("--sizes: no size is left to measure") end
  for _, note in ipairs(job.notes) do job.progress:print(note) end
  pass_input.choose_candidates(job, args.strategies, cells)
  return cells
end

-- Gives each cell the names of its candidates.
function pass_input.choose_candidates(job, names, cells)
  local wanted = names and sequences.set(names)
  for _, word in ipairs(names or {}) do
    if not job.candidates[word] then
      fail.input("--strategies: there is no %s%s", word, among(word, sequences.field(job.candidates, "name")))
    end
    local base = epilogue_ways.base(job, word)
    if base then
      fail.input("--strategies: %s is %s with its epilogue apart, which --fusion measures, too; %s is "
        .. "required", word, base, base)
    end
  end
  for _, cell in ipairs(cells) do
    cell.candidates = sequences.map(job.candidates, function(candidate)
      local named = wanted and wanted[candidate.name] or not wanted and candidate.usual
      return named and candidate.ops[cell.op] and candidate.name or nil
    end)
    if #cell.candidates == 0 then fail.input("no candidate implements %s; see --strategies", cell.op) end
  end
end

function pass_input.check_default(job)
  local default = job.candidates[job.default]
  if not default then
    fail.input("--default: there is no %s%s", job.default,
      among(job.default, sequences.field(job.candidates, "name")))
  end
  for _, op in ipairs(job.ops) do
    if not default.ops[op.name] then
      fail.input("--default: %s does not implement %s", job.default, op.name)
    end
  end
end

-- The input of a pass of ranks on `nodes` nodes, as the bench reads it. The requests of a cell
-- (epilogue_ways.lua) are of one op.
function pass_input.text(job, cells, seed, nodes)
  local lines = { ("pass samples=%d warm_up=%d seed=%d sync=%s nodes=%d"):format(job.samples, job.warm_up,
    seed, job.sync, nodes) }
  for id, cell in ipairs(cells) do
    local shape = cell.fusion and ("num_tokens=%d hidden_size=%d"):format(cell.num_tokens, cell.hidden_size)
      or ("count=%d"):format(cell.count)
    for _, request in ipairs(cell.requests) do
      lines[#lines + 1] = ("measure id=%d op=%s dtype=%s %s%s%s strategies=%s"):format(id, cell.op,
        cell.dtype, shape, request.fusion and " fusion=" .. request.fusion or "",
        cell.splits and " splits=" .. cell.splits or "", table.concat(request.names, ","))
    end
  end
  return table.concat(lines, "\n") .. "\n"
end

return pass_input
