-- Jobs in which gentables lies: requests to gentables-replay, gentables-workload and gentables-bench.
local file = require "core.file"
local system = require "core.system"
local tokens = require "fuzz.structure.tokens"

local folder = system.program():gsub("[^/]*$", "")

local mutate = tokens.mutator { "measure", "gemm", "run", "quit", "begin", "end", "do", "collective", "\n",
  " ", "=", "id=1", "op=alltoallv", "splits=1:2", "m=1,2", "into=0@0", "a=0@8", "trans_a=1", "addend=bias",
  "dtype=float16",
  "fusion=RESIDUAL_RMS_NORM", "strategies=MPI", "strategies=AUTO", "count=7", "matrix=1,2,3,4", "path=x" }

local gemm = "gemm id=gemm_001 dtype=float32 batch=1 m=64 n=64 k=64 trans_a=0 lda=64 stride_a=0 "
  .. "trans_b=0 ldb=64 stride_b=0 addend=none alpha=1 beta=1 "

local step = [[
begin name=x gemms=3 collectives=1 actions=5 seed=1
collective name=bucket1 kind=allreduce dtype=float32 elements=64
gemm name=l.g m=8 n=8 k=8 layout=NT phase=forward sequence=0 dtype=float32
gemm name=l.g m=8 n=8 k=8 layout=NN phase=backward sequence=0 dtype=float32
gemm name=l.g m=8 n=8 k=8 layout=TN phase=backward sequence=0 dtype=float32 into=0@0
do gemm=0
do gemm=1
do gemm=2
do post=0
do await=0
end
run channels=2 threads=1 steps=2 warm_up=1 wait=futex backend=host transport=builtin patience_ms=2000 path=
quit
]]

local function measure(id, more)
  return ("measure id=%d op=allreduce dtype=bfloat16 fusion=NONE %s mode=eager min_samples=1 max_samples=2 "
    .. "budget_us=1000 precision=0.02 seed=1 strategies=MPI,ONESHOT\n"):format(id, more)
end
local measures = measure(1, "hidden_size=64 num_tokens=4") .. measure(2, "count=256") .. "quit\n"

-- A program without ranks, and one with two; each process reads the file as its standard input.
local function alone(command) return { "/bin/sh", "-c", "exec " .. command } end
local MPIRUN = "mpirun --oversubscribe" .. (system.is_root() and " --allow-run-as-root" or "")
local function ranks(command)
  return { "/bin/sh", "-c", ("exec %s -n 2 sh -c 'exec %s'"):format(MPIRUN, command) }
end

-- Under the sanitizers leaks are not checked: MPI leaks, and LeakSanitizer crashes where it looks through the
-- threads of oneDNN, which is loaded at run time.
local WITHOUT_LEAKS = "ASAN_OPTIONS=detect_leaks=0"

local list = {}
local function add(name, program, arguments, text, words)
  if not file.exists(folder .. program) then return end
  local command = words(("\"%s%s\" %s"):format(folder, program, arguments))
  list[#list + 1] = { name, command[2], command[3], program = command[1], files = { ["in/requests"] = text },
    targets = { "in/requests" }, mutate = mutate, foreign = true, slow = 20, nightly = words == ranks,
    environment = { WITHOUT_LEAKS } }
end

add("replay", "gentables-replay", "--serve <in/requests", gemm .. "min_samples=5 max_samples=5\nquit\n",
  alone)
add("replay of a file", "gentables-replay", "in/requests", gemm .. "threads=2\n", alone)
add("workload", "gentables-workload", "<in/requests", step, ranks)
add("bench", "gentables-bench", "--serve --timeout 2 <in/requests", measures, ranks)
return list
