-- What a file for an MPI library, or for UCC, asks of it: which algorithm at which communicator size and
-- message size, and how a run reads the file.
--
-- asked.read(path) returns
--   path         the file, without links
--   library      "Open MPI" or "MPICH"
--   decider      what obeys its rules, and chooses where they ask for nothing: "Open MPI", "UCC" or "MPICH"
--   unchecked    number of its sections that runs cannot obey, for several nodes; nil: it has no sections
--   rules        the format of its rules, a key of ompi.versions; nil: it has none
--   decides      whether it asks for algorithms that runs show
--   files        the files that each rank must open: the file, and the rules that it names
--   named        these rules as the file names them, or nil
--   environment  { "NAME=VALUE"... }: with it the library reads the file
--   algorithm(ranks, bytes)  the algorithm's name, as in rules; nil: the library's own decision
-- It raises on files that are none of these.
local fail = require "base.fail"
local file = require "core.file"
local foreign = require "reading.foreign"
local readers = require "reading.list"
local sequences = require "base.sequences"

local asked = {}

local RULES = "coll_tuned_dynamic_rules_filename"
local KINDS = "rules or parameters of Open MPI's coll/tuned, MPICH's selection, or sections of UCC are " ..
  "required"

-- The part of a path before its last name, with the slash.
local function folder_of(path) return path:match("^.*/") or "" end

-- ---- rules --------------------------------------------------------------------------------------

-- "MPI_RING" as "ring"; nil: the library's own decision.
local function algorithm_of(strategy)
  return strategy ~= "MPI" and strategy:gsub("^MPI_", ""):lower() or nil
end

-- The function `algorithm` of a file of rules, and the key of ompi.versions.
local function rules_in(path, text)
  local reader = readers.of(text:sub(1, readers.HEAD_BYTES))
  local result = foreign.read_text(reader.name, text, path)
  local function algorithm(ranks, bytes)
    local rule = sequences.find(result.rules_of(ranks) or {}, function(one)
      return one.from <= bytes and bytes <= one.to
    end)
    return rule and algorithm_of(rule.strategy)
  end
  if reader.name == "ompi-json" then return algorithm, "json" end
  return algorithm, text:find("^rule%-file%-version") and "v2" or "classic"
end

local function of_rules(path, text)
  local algorithm, rules = rules_in(path, text)
  return { path = path, library = "Open MPI", decider = "Open MPI", rules = rules, decides = true,
    files = { path }, algorithm = algorithm,
    environment = { "OMPI_MCA_coll_tuned_use_dynamic_rules=1", ("OMPI_MCA_%s=%s"):format(RULES, path) } }
end

-- ---- parameters ---------------------------------------------------------------------------------

-- The value of the parameter that names rules, with its line; nil: there is none. Raises on a line that is no
-- parameter.
local function named_rules(path, text)
  local name, at, number = nil, nil, 0
  for line in (text .. "\n"):gmatch("(.-)\r?\n") do
    number = number + 1
    local key, value = line:match("^%s*([%w_]+)%s*=%s*(.-)%s*$")
    if not key and line:find("^%s*[^#%s]") then
      fail.input("%s:%d: no parameter of Open MPI, NAME = VALUE; %s", path, number, KINDS)
    end
    if key == RULES then name, at = value, number end
  end
  return name, at
end

local function of_parameters(path, text)
  local of = { path = path, library = "Open MPI", decider = "Open MPI", files = { path },
    algorithm = function() end,
    environment = { "OMPI_MCA_mca_base_envar_file_prefix=" .. path } } -- as mpirun --tune sets it
  local name, line = named_rules(path, text)
  if not name then return of end
  local rules = name:find("^/") and name or folder_of(path) .. name
  if not file.exists(rules) then
    fail.input("%s:%d: there are no rules %s; generate makes both files", path, line, rules)
  end
  of.named, of.files[2] = name, fail.unless(file.real_path(rules))
  of.algorithm, of.rules = rules_in(rules, fail.unless(file.read(rules)))
  of.decides = true
  return of
end

-- ---- sections of UCC ----------------------------------------------------------------------------

-- The algorithm of each range: { { from, to, name }... }; `to` is exclusive.
local function ucc_ranges(tune, path, line)
  local ranges = {}
  for token in tune:gmatch("[^#]+") do
    local from, to, name = token:match("^%l+:host:(%d+)%-(%w+):@([%w_]+)$")
    to = to == "inf" and math.huge or tonumber(to)
    if not to or not token:find("^allreduce:") then
      fail.input("%s:%d: %s is no range of an allreduce; %s", path, line, token, KINDS)
    end
    ranges[#ranges + 1] = { from = tonumber(from), to = to, name = "ucc_" .. name }
  end
  return ranges
end

-- Runs call UCC by Open MPI's coll/ucc, on this machine alone.
local function of_ucc(path, text)
  local of_ranks, unchecked, ranks, number = {}, 0, nil, 0
  for line in (text .. "\n"):gmatch("(.-)\r?\n") do
    number = number + 1
    if line:find("^%[") then
      local team, nodes = line:match("^%[team_size=(%d+) ppn=%d+ nnodes=(%d+)%]$")
      if not team then fail.input("%s:%d: unknown section; %s", path, number, KINDS) end
      ranks = nodes == "1" and tonumber(team) or nil
      unchecked = unchecked + (ranks and 0 or 1)
    elseif line:find("^UCC_TL_UCP_TUNE=") and ranks then
      of_ranks[ranks] = ucc_ranges(line:match("=(.*)$"), path, number)
    end
  end
  local function algorithm(size, bytes)
    local range = sequences.find(of_ranks[size] or {}, function(one)
      return one.from <= bytes and bytes < one.to
    end)
    return range and range.name
  end
  return { path = path, library = "Open MPI", decider = "UCC", unchecked = unchecked, files = { path },
    algorithm = algorithm, decides = true,
    environment = { "OMPI_MCA_coll_ucc_enable=1", "OMPI_MCA_coll_ucc_priority=100",
      "UCC_CONFIG_FILE=" .. path } }
end

-- ---- any of them ----------------------------------------------------------------------------------

-- MPICH exports no algorithms, so `algorithm` has none.
local function of_mpich(path)
  return { path = path, library = "MPICH", decider = "MPICH", files = { path }, algorithm = function() end,
    environment = { "MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE=" .. path } }
end

-- The reason for which a file that gentables made cannot be proven, or nil.
local function unprovable(text, reader)
  if reader and reader.name == "nccl-tuner" then
    return "NCCL's choices are not visible here; NCCL_DEBUG=INFO with NCCL_DEBUG_SUBSYS=TUNING logs them"
  elseif text:find("coll_han_dynamic_rules_filename", 1, true) then
    return "the choices of coll/han are not visible here; --mca coll_han_verbose 30 logs them"
  end
end

function asked.read(path)
  local text = fail.unless(file.read(path))
  path = fail.unless(file.real_path(path))
  local reader = readers.of(text:sub(1, readers.HEAD_BYTES))
  local why = unprovable(text, reader)
  if why then fail.input("%s: cannot be proven: %s", path, why) end
  if reader and reader.name:find("^ompi%-") then return of_rules(path, text) end
  if text:find("^%s*{") and text:find('"collective=', 1, true) then return of_mpich(path) end
  if ("\n" .. text):find("\n%[[^\n]*%]\r?\nUCC_TL_UCP_TUNE=") then return of_ucc(path, text) end
  if reader or not text:find("=", 1, true) or text:find("\0", 1, true) then
    fail.input("%s: is no such file; %s", path, KINDS)
  end
  return of_parameters(path, text)
end

return asked
