-- `gentables generate` with the options of TensorRT-LLM's allreduce_heuristic_code_gen.py, or none of them:
-- the table of --sm_version, or of the rows that are found, in DIR/gen_heuristic_code. Without rows, it
-- first sweeps TP 2, 4 and 8 on that generator's grid into --save_csv_dir.
local child_process = require "system.child_process"
local data_folder = require "surroundings.data_folder"
local detection = require "surroundings.detection"
local fail = require "base.fail"
local file = require "core.file"
local folder_spec = require "rows.folder_spec"
local formats = require "formats.list"
local lists = require "lists.lists"
local next_commands = require "surroundings.next_commands"
local scratch = require "system.scratch"
local sequences = require "base.sequences"
local system = require "core.system"

local trtllm_generator = {}

local FOLDER = "gen_heuristic_code"
local ROWS = "data" -- of a sweep without --save_csv_dir
local FORMAT = "trtllm"
local GRACE = 5 -- seconds for the end of a sweep

-- ---- a sweep, without --data_dir --------------------------------------------------------------

local function spec_text(arch, strategies)
  local grid, lines = lists.trtllm_grid, { "return {" }
  local function add(key, text) lines[#lines + 1] = ("  %s = %s,"):format(key, text) end
  local function numbers(list) return "{ " .. table.concat(list, ", ") .. " }" end
  add("arch", ("%q"):format(arch))
  add("tp", numbers(grid.tp))
  add("hidden_sizes", numbers(grid.hidden_sizes))
  add("num_tokens", numbers(grid.num_tokens))
  add("strategies", '{ "' .. table.concat(strategies, '", "') .. '" }')
  lines[#lines + 1] = "}"
  return table.concat(lines, "\n") .. "\n"
end

-- The strategies of a sweep for the arch; raises if this build cannot measure it.
local function strategies_of(arch, with_auto)
  local backend = lists.arch(arch).backend
  local strategies = sequences.filter(lists.strategies_of(backend, true), function(name)
    return lists.find("strategies", name).trtllm -- its table can name it
  end)
  if #strategies == 0 then
    fail.input("no --data_dir, and this gentables cannot measure %s (no backend %s); --data_dir DIR with " ..
      "benchmark.tp{2,4,8}.%s.csv is required", arch, backend, arch)
  end
  if with_auto then strategies[#strategies + 1] = "AUTO" end
  return strategies
end

-- Runs `gentables sweep` with a spec. Returns its end (system/child_process.lua).
local function run_sweep(path, folder, incumbent)
  local words = { system.program(), "sweep", path, "--out", folder, "--exhaustive" }
  if incumbent then table.move({ "--incumbent", incumbent }, 1, 2, #words + 1, words) end
  return child_process.run(words, { grace = GRACE, on_line = function(line)
    io.stdout:write(line, "\n")
  end })
end

-- Sweeps the arch into the folder, and prints the lines of the sweep. A spec.lua for the arch that is there
-- is used; else the sweep has a spec of its own, which becomes spec.lua if it ends well and there is none. So
-- a failed sweep leaves no spec for rows that do not exist, and no empty folder. `incumbent`: the header of
-- the lookup of AUTO, or nil.
local function sweep(folder, arch, text, incumbent)
  local path, is_new = folder .. "/spec.lua", not file.exists(folder)
  local _, other = folder_spec.find(folder, arch)
  local is_there, own <close> = file.exists(path) and not other, scratch.folder("gentables-spec")
  if not is_there then fail.unless_done(file.write(own.path .. "/spec.lua", text)) end
  local _ <close> = setmetatable({}, { __close = function()
    if is_new then os.remove(folder) end -- only an empty folder can be removed
  end })
  local ran = run_sweep(is_there and path or own.path .. "/spec.lua", folder, incumbent)
  if ran.problem == "start" then fail.work("the sweep did not start: %s", ran.reason) end
  if not ran.well then
    local code = ran.reason == "exit code 2" and 2 or 1
    fail.with(code, "the sweep of %s failed (%s): %s", folder, ran.reason,
      (child_process.last_line(ran.errors) or ""):gsub("^gentables: ", ""))
  end
  if not file.exists(path) then fail.unless_done(file.write(path, text)) end
end

-- ---- the options ------------------------------------------------------------------------------

local function arch_of(args)
  local number = args.sm_version:match("^%d+$")
  if not number then fail.input("--sm_version %s: a number such as 89 is required", args.sm_version) end
  if args.arch then fail.input("--sm_version and --arch both name the arch; only one is allowed") end
  return "sm" .. number
end

-- Raises for options that only tables of TensorRT-LLM's generator have.
local function reject_its_options(args)
  for _, name in ipairs { "save_csv_dir", "enable_auto", "incumbent" } do
    if args[name] then fail.input("--%s requires --sm_version N", name) end
  end
end

-- Sweeps the arch, or else this machine's GPUs, into --save_csv_dir. Returns the arch.
local function measure(args, arch)
  local is_elsewhere = arch and (os.getenv("GENTABLES_LAUNCHER") or "") ~= "" -- with other GPUs than here
  local sm, reason
  if not is_elsewhere then sm, reason = detection.sm() end
  if reason then
    fail.input("no --data-dir DIR, no benchmark.tp{N}.%s.csv in %s, and no GPU to measure: %s; "
      .. "%s measures CPU ranks", arch or "{arch}", data_folder.IN_WORDS, reason,
      next_commands.measure_host())
  end
  arch = arch or ("sm%d"):format(sm)
  local strategies = strategies_of(arch, args.enable_auto)
  args.data_dir = args.save_csv_dir or ROWS
  sweep(args.data_dir, arch, spec_text(arch, strategies), args.incumbent)
  return arch
end

local function refuse_incumbent(args, folder)
  if args.incumbent and folder then
    fail.input("--incumbent requires a sweep; with the rows in %s there is none", folder)
  end
end

-- The option that selects an arch. With --arch, the files of an SM version are others.
local function option_of(arch)
  local sm = arch:match("^sm(%d+)$")
  return sm and "--sm-version " .. sm or "--arch " .. arch
end

-- The arch of the table; sets args.data_dir. Prints which rows were found, if neither was given.
local function find_rows(args)
  local arch = args.sm_version and arch_of(args) or args.arch
  if args.data_dir then return arch or data_folder.arch(args.data_dir, option_of) end
  if not args.save_csv_dir then args.data_dir = data_folder.find(arch) end
  if not args.data_dir then return args.arch or measure(args, arch) end
  refuse_incumbent(args, args.data_dir)
  arch = arch or data_folder.arch(args.data_dir, option_of)
  data_folder.print(args.data_dir, arch)
  return arch
end

-- Sets the options that the command line leaves out: the folder of the rows and their arch; without --arch,
-- for an SM version, also those of TensorRT-LLM's generator. Sweeps if there are no rows.
function trtllm_generator.prepare(args)
  if args.arch and not args.sm_version then reject_its_options(args) end
  if args.incumbent and not args.enable_auto then fail.input("--incumbent requires --enable_auto") end
  refuse_incumbent(args, args.data_dir)
  local is_given = args.arch and not args.sm_version
  args.arch = find_rows(args)
  args.sm_version = not is_given and args.arch:match("^sm(%d+)$") or nil
  if is_given then return end
  if not args.sm_version then return reject_its_options(args) end
  args.out = args.out or args.data_dir:gsub("(.)/+$", "%1") .. "/" .. FOLDER
  args.formats = args.formats or { FORMAT }
  args.choose = args.choose or "corner" -- as TensorRT-LLM's generator
end

-- Prints, after the table is written, the TP sizes without rows, and the result of AUTO.
function trtllm_generator.report(args, source)
  if not args.sm_version then return end
  local there = sequences.set(sequences.field(source.files, "tp"))
  for _, tp in ipairs(lists.trtllm_grid.tp) do
    if not there[tp] then
      fail.note("no %s/benchmark.tp%d.%s.csv: its cells are %d, as all unmeasured ones", args.data_dir, tp,
        args.arch, lists.find("strategies", "NCCL_SYMMETRIC").trtllm)
    end
  end
  if args.enable_auto then
    local line = require("formats.auto_loss").line(source.rows, formats.find(FORMAT).names)
    print(line or "AUTO: the rows have no cell with AUTO and another strategy")
  end
end

return trtllm_generator
