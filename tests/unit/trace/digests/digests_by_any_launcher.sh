#!/bin/sh
# The documented lines that make digests by one process per node: by srun (a stand-in), mpirun and xargs.
. "$SOURCE/tests/lib.sh"
needs mpirun xargs find
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
cd "$WORK"

cat >make.lua <<'END'
for rank = 0, 9 do
  assert(require("core.file").make_folder("traces/rank" .. rank))
  assert(require("core.file").write(("traces/rank%d/trace.json"):format(rank), require "small_trace"(rank)))
end
END
"$GENTABLES" lua make.lua || die "no traces"
cp traces/rank0/trace.json traces/run_merged.json # of trace merge
mkdir bin
ln -s "$GENTABLES" bin/gentables
# Four tasks, each with the variables of Slurm.
cat >bin/srun <<'END'
#!/bin/sh
while case $1 in -*) true ;; *) false ;; esac do shift; done
for task in 0 1 2 3; do SLURM_PROCID=$task SLURM_NTASKS=4 "$@" & done
wait
END
chmod +x bin/srun
PATH=$WORK/bin:$PATH

# run_line LINE: runs it, and compares the results with those from the traces.
run_line() {
    rm -rf digests out
    sh -c "$1" >said 2>stderr </dev/null || die "failed: $1"
    [ "$(awk '/^written   digests: / { made += $3 } END { print made }' said)" = 10 ] ||
        die "not 10 digests, each made once, by $1: $(cat said)"
    succeeds trace collectives digests --out out --csv
    diff -r wanted out || die "other results by $1"
}

succeeds trace collectives traces --out wanted --csv
for launcher in srun mpirun find; do
    line=$(grep "^    $launcher .*trace digest " "$SOURCE/docs/traces.md") || die "the page has no $launcher"
    run_line "$line"
done
line=$(grep '^    mpirun .*trace digest ' "$SOURCE/docs/traces.md" | sed 's/-N 1/-n 3 --oversubscribe/')
run_line "$line"
[ "$(grep -c made said)" = 3 ] || die "not three processes: $(cat said)"
