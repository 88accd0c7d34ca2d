#!/bin/sh
# TWOLEVEL_NUMA, with two NUMA nodes of one processor each as hwloc describes them, in its synthetic form and
# in an XML file: right for each fusion, in messages of one slice and of several. It is refused for ranks that
# are not bound, or that are unevenly divided among NUMA nodes.
. "$(dirname "$0")/lib.sh"

skip() {
    echo "skipped: $1"
    exit 77
}
[ "$HAS_HWLOC" = 1 ] || skip "built without hwloc"
taskset -c 0 true 2>/dev/null || skip "processor 0 is not available"
taskset -c 1 true 2>/dev/null || skip "processor 1 is not available"
synthetic="HWLOC_SYNTHETIC=numa:2 core:1 pu:1"
xml="HWLOC_XMLFILE=$(dirname "$0")/two_numa_nodes.xml"

# requests SHAPE...: one for each fusion and shape, "num_tokens hidden_size".
requests() {
    id=0
    for fusion in $("$BENCH" --candidates | sed -n 's/^fusion name=//p'); do
        for shape; do
            id=$((id + 1))
            echo "measure id=$id dtype=bfloat16 fusion=$fusion num_tokens=${shape% *}" \
                "hidden_size=${shape#* } min_samples=2 max_samples=2 budget_us=1000 seed=$id" \
                "strategies=TWOLEVEL_NUMA"
        done
    done
    echo quit
}

cat >"$WORK/bind.sh" <<'END'
shift "$OMPI_COMM_WORLD_RANK"
exec taskset -c "$1" "$BENCH" --serve --timeout 300
END

# serve SETTING CPUS...: answers the requests by ranks that are bound to these processors, one word for each,
# with a setting of hwloc.
serve() {
    setting=$1
    shift
    mpirun=$(env "$setting" "$GENTABLES" lua "$SOURCE/tests/mpirun.lua") # leaves hwloc's variables alone
    # shellcheck disable=SC2086 # several words
    env "$setting" BENCH="$BENCH" $mpirun -n $# sh "$WORK/bind.sh" "$@" <"$WORK/requests" >"$WORK/answers" ||
        fail "$setting, processors $*: exit code $?"
}

# is_right SETTING CPUS...: every request has a time.
is_right() {
    serve "$@"
    rows=$(grep -c '^row ' "$WORK/answers" || true)
    [ "$rows" = "$(grep -c '^measure ' "$WORK/requests")" ] ||
        fail "$*: $rows rows; $(grep '^none ' "$WORK/answers" | head -1)"
}

# is_refused SETTING CPUS...
is_refused() {
    serve "$@"
    why="reason=ranks are not bound to several NUMA nodes"
    grep -q "^strategy name=TWOLEVEL_NUMA status=unavailable $why" "$WORK/answers" ||
        fail "$*: $(grep TWOLEVEL_NUMA "$WORK/answers" | head -1)"
}

requests "1 16" "37 4096" "300 2880" >"$WORK/requests"
is_right "$synthetic" 0 0 1 1
requests "64 1024" >"$WORK/requests"
is_right "$xml" 0 1 1 0
is_refused "$synthetic" 0-1 0-1 0-1 0-1
is_refused "$synthetic" 0 0 0 1
is_refused "HWLOC_SYNTHETIC=numa:1 core:2 pu:1" 0 0 1 1
