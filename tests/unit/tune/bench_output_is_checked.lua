-- A bench that prints wrong, missing, duplicate or damaged lines: gentables tune ends with exit code 1 and
-- one line that names the bench and the line. The bench is a script; `lie` is a command of sed that changes
-- its output.
local file = require "core.file"
local lib = require "unit.sweep.lib"
local lu = require "luaunit"

local BENCH = [[
#!/bin/sh
numbers="low_us=1.0 high_us=2.0 samples=5 min_us=1.0 p95_us=2.0 p99_us=2.0 bound_us=0.5 bits=0 mode=eager"
numbers="$numbers accumulate=native placement=dedicated skew_us=0.1 epilogue=none mean_of_max_us=1.5"
numbers="$numbers max_of_means_us=1.5 mean_us=1.5 op_us=0.0"
candidates() {
    echo "candidate name=MPI plugin=0 usual=1 ops=allreduce,allgather reason="
    echo "candidate name=ONESHOT plugin=0 usual=1 ops=allreduce reason="
    echo "libraries hash=00000000000000ff"
}
pass() {
    echo "text of a library"
    echo "progress done=1 of=2"
    grep -o "id=[0-9]*" "$1" | while read -r id; do
        echo "row $id strategy=MPI time_us=1.5 $numbers"
        echo "none $id strategy=ONESHOT epilogue=none reason=no reason"
    done
    echo "pass total_us=1.0 calls_us=1.0 reduce_us=0.1 op_total_us=0.0 op_calls_us=0.0"
}
case $1 in
--version) echo "gentables-bench protocol=3 bench=liar isa=none compiler=none library=Open MPI v4.1.4" ;;
--candidates) candidates | sed "$LIE" ;;
--pass) pass "$2" | sed "$LIE" ;;
esac
]]

local TestLies = {}

function TestLies:setUp()
  self.folder = lib.scratch("/tmp")
  self.bench = self.folder .. "/bench"
  lib.write(self.bench, BENCH)
  assert(os.execute(("chmod +x '%s'"):format(self.bench)))
end

function TestLies:tearDown() lib.clean(self.folder) end

function TestLies:tune(lie)
  return lib.run({ lib.gentables, "tune", "--op", "allreduce", "--sizes", "1K,2K", "--sync", "both",
    "--bench", self.bench, "--launcher", "env RANKS={ranks}", "--cache", self.folder .. "/cache.json",
    "--fresh", "--out", self.folder .. "/out" }, { "LIE=" .. lie })
end

function TestLies:test_an_honest_bench_is_believed()
  local ended, out, errors = self:tune("")
  lu.assertEquals(ended, "exit code 0", errors)
  lu.assertStrContains(out, "2 KiB      MPI")
  lu.assertStrContains(out, "no time: ONESHOT: no reason")
end

function TestLies:is_refused(lie, problem)
  local ended, _, errors = self:tune(lie)
  lu.assertEquals(ended, "exit code 1", lie .. "\n" .. errors)
  lu.assertEquals(select(2, errors:gsub("\n", "")), 1, lie .. "\n" .. errors)
  lu.assertStrContains(errors, ("gentables: %s: %s"):format(self.bench, problem))
  lu.assertStrContains(errors, "build it and gentables from the same tree")
  lu.assertFalse(file.exists(self.folder .. "/cache.json"))
end

function TestLies:test_wrong_candidates_are_refused()
  for lie, problem in pairs {
    ["s/candidate name=MPI/candidate name=/"] = "no name of a candidate in its line: candidate name= ",
    ["s/candidate name=MPI/candidate names=MPI/"] = "no name of a candidate in its line: candidate names=MPI",
    ["s/name=ONESHOT/name=MPI/"] = "a second candidate MPI in its line: candidate name=MPI",
    ["s/ plugin=0/  plugin=0/"] = "damaged fields in its line: candidate name=MPI  ",
    ["s/usual=1/usual=yes/"] = "plugin and usual must be 0 or 1 in its line: candidate name=MPI",
    ["s/ops=allreduce /ops=sum /"] = "sum is no op in its line: candidate name=ONESHOT",
    ["s/ops=[^ ]*//"] = "damaged fields in its line: candidate name=MPI",
    ["s/ ops=[^ ]*//"] = "no ops in its line: candidate name=MPI",
    ["s/hash=.*/hash=/"] = "no hash of its libraries in its line: libraries hash=",
  } do self:is_refused(lie, problem) end
end

function TestLies:test_wrong_answers_are_refused()
  for lie, problem in pairs {
    ["/^none/d"] = "no answer for allreduce of 1024 bytes by ONESHOT",
    ["/^row id=2/d"] = "no answer for allreduce of 2048 bytes by MPI",
    ["/^row/p"] = "a second answer to a request in its line: row id=1 strategy=MPI",
    ["s/^none id=2/none id=1/"] = "a second answer to a request in its line: none id=1 strategy=ONESHOT",
    ["s/^row id=2/row id=3/"] = "an answer without a request in its line: row id=3",
    ["s/^row id=1/row id=x/"] = "an answer without a request in its line: row id=x",
    ["s/^row id=1 strategy=MPI/row id=1/"] = "an answer without a request in its line: row id=1 time",
    ["s/^row id=1 strategy=MPI/row id=1 strategy=TWOSHOT/"] = "an answer without a request in its line: row",
    ["s/epilogue=none/epilogue=fused/"] = "an answer without a request in its line: row",
    ["s/ reason=no reason//"] = "no reason in its line: none id=1 strategy=ONESHOT",
    ["s/^row id=1/row id=1 /"] = "damaged fields in its line: row id=1  strategy",
    ["s/time_us=1.5/time_us=nan/"] = "time_us=nan in its line: row id=1",
    ["s/time_us=1.5/time_us=-1/"] = "time_us=-1 in its line: row id=1",
    ["s/time_us=1.5/time_us=3/"] = "a median outside its interval in its line: row id=1",
    ["s/ low_us=1.0//"] = "low_us=nil in its line: row id=1",
    ["s/samples=5/samples=0/"] = "samples=0 in its line: row id=1",
    ["s/mode=eager/mode=graph/"] = "mode=graph in its line: row id=1",
    ["s/placement=dedicated/placement=here/"] = "placement=here in its line: row id=1",
    ["s/ op_us=0.0/ op_us=inf/"] = "op_us=inf in its line: row id=1",
    ["s/$/ place=over/"] = "place=over in its line: row id=1",
    ["/^pass/d"] = "no line on the cost of the pass",
    ["s/^pass total_us=1.0/pass total_us=many/"] = "total_us=many in its line: pass total_us=many",
    ["s/ calls_us=1.0//"] = "calls_us=nil in its line: pass",
  } do self:is_refused(lie, problem) end
end

return require "suites" { { "TestLies", TestLies } }
