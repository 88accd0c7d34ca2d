#!/bin/sh
# gentables prove with Open MPI: files that gentables generates are obeyed at each size and communicator size;
# a wrong choice, a file that is not read and bad input are noticed. Nothing is left running.
. "$(dirname -- "$0")/lib.sh"

# Every size and communicator size; the file leaves three ranks, and 4 KiB, to Open MPI.
proves 0 "$rules" 2 256 4096 65536
has "^$rules: read by 2 ranks of Open MPI 4[.]" "$stdout"
row 2 256 basic_linear basic_linear obeyed
row 2 4096 - '[a-z_]+' ''
row 2 65536 ring ring obeyed
has '^obeyed in 2 of 2 cells; the file leaves 1 more to Open MPI' "$stdout"
proves 0 "$rules" 4 256 65536
row 4 256 basic_linear basic_linear obeyed
row 4 65536 ring ring obeyed
has '^ *2 +65536 +2 +ring +ring +obeyed$' "$stdout" # both halves
# Nothing is proven if the file decides none of the cells; parameters without rules can only be read.
proves 1 "$rules" 3 256 4096
row 3 256 - '[a-z_]+' ''
has '^nothing is proven: the file decides none of these cells' "$stdout"
if grep -q obeyed "$stdout"; then die "obeyed in no cell"; fi
proves 1 "$rules" 2 4096
has '^nothing is proven: ' "$stdout"
echo 'btl_vader_eager_limit = 12345' >"$WORK/no_rules.conf"
proves 0 "$WORK/no_rules.conf" 2 256
has 'no_rules.conf: read by 2 ranks' "$stdout"
has '^The file names no rules' "$stdout"
# An algorithm may have another one do its work: the ring needs an element for each rank.
sed 's/^0 1 0 0 .*/0 4 0 0/' "$rules" >"$WORK/small_ring.conf"
proves 0 "$WORK/small_ring.conf" 2 4
row 2 4 ring 'ring as recursive_doubling' obeyed
[ ! -s "$stderr" ] || die "notes about a run without fault"

# A program that loads a library, which is linked with libmpi, and hides its symbols, as Python does.
cat >"$WORK/loads.c" <<'END'
#include <dlfcn.h>
#include <stdio.h>
int main(int argc, char **argv) {
    int (*run)(int, char **) = NULL;
    void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (library != NULL) *(void **)&run = dlsym(library, "run");
    return run == NULL ? (fputs(dlerror(), stderr), 3) : run(argc, argv);
}
END
mpicc -shared -fPIC -Dmain=run "$SOURCE/tests/unit/proving/allreduces.c" -o "$WORK/allreduces.so"
cc -DLIBRARY="\"$WORK/allreduces.so\"" "$WORK/loads.c" -o "$WORK/loads" -ldl
# shellcheck disable=SC2086
ends_with 0 "$GENTABLES" prove "$rules" -- $run 2 "$WORK/loads" 256 65536
has "^$rules: read by 2 ranks of Open MPI 4[.]" "$stdout"
row 2 256 basic_linear basic_linear obeyed
row 2 65536 ring ring obeyed

# A wrong choice: the file that the ranks read is another one than the file that was read here.
cp "$rules" "$WORK/changing.conf"
cat >"$WORK/changes" <<END
#!/bin/sh
sed -i 's/ 4 0 0 # ring/ 2 0 0/' "$WORK/changing.conf"
exec $run 2 "$WORK/allreduces" 256 65536
END
chmod +x "$WORK/changes"
ends_with 1 "$GENTABLES" prove "$WORK/changing.conf" -- "$WORK/changes"
row 2 256 basic_linear basic_linear obeyed
row 2 65536 ring nonoverlapping 'NOT OBEYED'
has '^obeyed in 1 of 2 cells' "$stdout"
ends_with 0 "$GENTABLES" prove --json "$rules" -- sh -c "$run 2 $WORK/allreduces 256 65536"
cat >"$WORK/json.lua" <<'END'
local proof = assert(require("codec.json").decode(io.read "a"))
local cell = proof.cells[2]
assert(proof.ranks == 2 and proof.obeyed == 2 and proof.not_obeyed == 0 and proof.own == 0)
assert(cell.ranks == 2 and cell.bytes == 65536 and cell.calls == 1 and cell.asked == "ring" and cell.obeyed)
assert(#cell.ran == 1 and cell.ran[1].algorithm == "ring" and cell.ran[1].inner == nil)
END
"$GENTABLES" lua "$WORK/json.lua" <"$stdout" || die "another JSON"

# Parameters: the rules that they name are read in the folder of the file, or with their path.
not_proven() { # PATTERN FILE COMMAND...
    pattern=$1 file=$2
    shift 2
    rejects "$pattern" prove "$file" -- "$@"
}
cd "$WORK/tables"
printf '#!/bin/sh\necho "mpirun has detected an attempt to run as root." >&2\nexit 1\n' >"$WORK/as_root"
chmod +x "$WORK/as_root"
not_proven 'mpirun refuses to run as root; .* --allow-run-as-root' ompi_tp2.conf "$WORK/as_root" -n 2
proves 0 ompi_tp2.conf 2 256 65536
row 2 65536 recursive_doubling recursive_doubling obeyed
cd "$WORK"
# shellcheck disable=SC2086
not_proven 'ompi_tp2.conf: its rules ompi_tp2_rules.conf are not read.* generate --install-prefix' \
    tables/ompi_tp2.conf $run 2 ./allreduces 256
proves 0 installed/ompi_tp2.conf 2 256 65536
row 2 65536 recursive_doubling recursive_doubling obeyed

# Files that are not read: other options and variables come first.
# shellcheck disable=SC2086
{
    not_proven 'ompi_rules.conf: not read by 2 of 2 ranks; options' "$rules" \
        $run 2 --mca coll_tuned_use_dynamic_rules 0 ./allreduces 256
    not_proven 'ompi_rules.conf: not read by 2 of 2 ranks' "$rules" \
        env OMPI_MCA_coll_tuned_dynamic_rules_filename="$WORK/small_ring.conf" $run 2 ./allreduces 256
    not_proven '/no.conf: cannot be read: No such file' "$WORK/no.conf" $run 2 ./allreduces 256
}

# Bad input. A hanging program and its ranks are ended.
not_proven 'prove takes FILE -- COMMAND' "$rules"
not_proven 'no_such_program: No such file or directory; the words after --' "$rules" ./no_such_program
not_proven 'true: no rank was seen .*; a program of MPI is required, linked' "$rules" true
cat >"$WORK/static.c" <<'END'
int main(void) { return 0; }
END
if cc -static "$WORK/static.c" -o "$WORK/static" 2>"$stderr"; then
    # shellcheck disable=SC2086
    not_proven 'static: no rank was seen' "$rules" $run 2 "$WORK/static"
fi
# shellcheck disable=SC2086
{
    failed 'allreduces: calls no MPI_Allreduce on two ranks or more' prove "$rules" -- $run 2 ./allreduces
    failed 'allreduces hang: did not end within 2 s; --timeout' \
        prove --timeout 2 "$rules" -- $run 2 "$WORK/allreduces" hang
    failed 'allreduces linger: did not end within 2 s' \
        prove --timeout 2 "$rules" -- $run 2 "$WORK/allreduces" linger # mpirun waits for its output
    failed 'no_such_program: exit code [0-9]+: mpirun was unable to' \
        prove "$rules" -- $run 2 ./no_such_program
    failed 'allreduces die: exit code [0-9]+: .*rank 1' prove "$rules" -- $run 2 "$WORK/allreduces" die
}
failed 'false: exit code 1$' prove "$rules" -- false
if pgrep -f "^$WORK/allreduces" >"$stdout"; then die "ranks or their children are left"; fi
[ -z "$(find "$TMPDIR" -name 'gentables-prove*')" ] || die "records are left"

# Files that ask nothing that can be shown, and broken ones.
echo 'allreduce,0,1024,ring,ll,2,-1,2' >"$WORK/nccl_tuner.csv"
not_proven 'nccl_tuner.csv: cannot be proven: .* NCCL_DEBUG=INFO' nccl_tuner.csv true
echo '# mpirun --mca coll_han_dynamic_rules_filename ompi_han.conf' >"$WORK/ompi_han.conf"
not_proven 'ompi_han.conf: cannot be proven: the choices of coll/han' ompi_han.conf true
head -n -3 "$rules" >"$WORK/cut.conf"
not_proven 'cut.conf:[0-9]+: the file ends before' cut.conf true
sed 's/ 4 0 0 # ring/ 44 0 0/' "$rules" >"$WORK/unknown.conf"
not_proven 'unknown.conf:[0-9]+: unknown algorithm 44' unknown.conf true
printf 'a = 1\nb\n' >"$WORK/half.conf"
not_proven 'half.conf:2: no parameter of Open MPI' half.conf true
echo 'coll_tuned_dynamic_rules_filename = gone.conf' >"$WORK/names.conf"
not_proven 'names.conf:1: there are no rules .*gone.conf' names.conf true
not_proven 'tables: is not a file' "$WORK/tables" true
not_proven 'table.csv: is no such file; rules or parameters of Open MPI' tables/table.csv true
cat >"$WORK/six.json" <<'END'
{"rule_file_version": 3, "module": "tuned", "collectives": {"allreduce": [{"comm_size_min": 2,
  "comm_size_max": 2, "rules": [{"msg_size_min": 0, "msg_size_max": "inf", "alg": "ring"}]}]}}
END
# shellcheck disable=SC2086
not_proven 'six.json: Open MPI 6.0 and later read it, and this is Open MPI 4[.0-9]*; ompi_rules.conf' \
    six.json $run 2 ./allreduces 256

# Sections of UCC: broken ones, and those that no rank reads, as this Open MPI does not call UCC.
sections() { printf '# UCC\n\n[%s]\nUCC_TL_UCP_TUNE=%s\n' "$1" "$2" >"$WORK/ucc.conf"; }
sections 'team_size=2 ppn=2' 'allreduce:host:0-inf:@ring'
not_proven 'ucc.conf:3: unknown section' ucc.conf true
sections 'team_size=2 ppn=2 nnodes=1' 'allreduce:host:0-65:@ring#allreduce:0-inf:@dbt'
not_proven 'ucc.conf:4: allreduce:0-inf:@dbt is no range of an allreduce' ucc.conf true
# The first line may be a section, and lines may end as in Windows.
printf '[team_size=2 ppn=2]\nUCC_TL_UCP_TUNE=allreduce:host:0-inf:@ring\n' >"$WORK/ucc.conf"
not_proven 'ucc.conf:1: unknown section' ucc.conf true
printf '# UCC\r\n[team_size=2 ppn=2]\r\nUCC_TL_UCP_TUNE=allreduce:host:0-inf:@ring\r\n' >"$WORK/ucc.conf"
not_proven 'ucc.conf:2: unknown section' ucc.conf true
# Messages are about UCC, also without one: calls that UCC did not do, and sections for several nodes.
sections 'team_size=2 ppn=2 nnodes=1' 'allreduce:host:0-64:@ring'
printf '[team_size=4 ppn=2 nnodes=2]\nUCC_TL_UCP_TUNE=allreduce:host:0-inf:@dbt\n' >>"$WORK/ucc.conf"
ends_with 2 "$GENTABLES" prove ucc.conf -- true
has 'ucc.conf: not checked: 1 section with nnodes above 1' "$stderr"
cat >"$WORK/says.lua" <<'END'
local asked, verdict = require "proving.asked", require "proving.verdict"
local of = asked.read(arg[1])
local run = { library = "Open MPI v6.0.0", ranks = { { size = 2 }, { size = 2 } }, unlisted = 0, cells = {} }
for i = 2, #arg, 2 do
  run.cells[i // 2] = { ranks = 2, bytes = tonumber(arg[i]), calls = 1,
    ran = { { algorithm = arg[i + 1], calls = 1 } } }
end
verdict.print(of, run, verdict.of(of, run))
END
succeeds lua "$WORK/says.lua" ucc.conf 8 ucc_ring 64 ring
has "^obeyed in 1 of 1 cell; the file leaves 1 more to UCC's own decision" "$stdout"
[ ! -s "$stderr" ] || die "a note about a run without fault"
succeeds lua "$WORK/says.lua" ucc.conf 64 ring
has '^nothing is proven: .* leaves them to UCC$' "$stdout"
has "no algorithm of UCC's TL/UCP was seen: .* this build of UCC calls" "$stderr"
sections 'team_size=2 ppn=2 nnodes=1' 'allreduce:host:0-inf:@ring'
if ! ompi_info | grep -q 'MCA coll: ucc'; then
    # shellcheck disable=SC2086
    not_proven 'ucc.conf: not read by 2 of 2 ranks' ucc.conf $run 2 ./allreduces 256
fi
