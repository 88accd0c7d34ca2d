#!/bin/sh
# Runs gentables-bench-cuda with stand-ins for the driver, NCCL and NVML, which the loader finds by its path.
# BENCH: the program; STAND_INS: their folder; WORK: a folder of this test's own.
. "$SOURCE/tests/lib.sh"

# only NAME...: a folder with these libraries alone; in place of the others, which this machine may have, are
# files that cannot be loaded.
only() {
    folder=$WORK/libraries
    rm -rf "$folder"
    mkdir -p "$folder"
    for absent in libcuda.so.1 libnccl.so.2 libnvidia-ml.so.1; do : >"$folder/$absent"; done
    for library in "$@"; do cp "$STAND_INS"/lib"$library".so.* "$folder"; done
}

# beside NAME COMMAND...: runs a command in the background, in a folder of its own: for commands that mostly
# wait. all_beside waits for all of them.
besides=
beside() {
    in_folder "$@" &
    besides="$besides $!"
}
in_folder() {
    WORK=$WORK/$1
    mkdir -p "$WORK"
    shift
    "$@"
}
all_beside() {
    for each in $besides; do wait "$each" || exit 1; done
    besides=
}

arena=4M # of a rank's data; each start fills it. Empty: the bench's default

# bench SETTINGS OPTION...: its output in $WORK/out and $WORK/err, its exit code in $status.
bench() {
    settings=$1
    shift
    status=0 # for the tests
    export status
    STAND_IN=$settings LD_LIBRARY_PATH=$folder timeout 300 "$BENCH" --workspace 64K \
        ${arena:+--arena "$arena"} "$@" >"$WORK/out" 2>"$WORK/err" || status=$?
}

# ends CODE SETTINGS OPTION...: the same, with this exit code.
ends() {
    wanted_status=$1
    shift
    bench "$@"
    [ "$status" = "$wanted_status" ] || fail "$*: exit code $status"
}

# request HIDDEN_SIZE NUM_TOKENS MODE [FIELD...]: prints a request for two samples, and the end of requests.
request() {
    echo "measure id=1 op=allreduce dtype=bfloat16 fusion=NONE hidden_size=$1 num_tokens=$2 mode=$3" \
        "min_samples=2 max_samples=2 budget_us=100000 precision=0.5 seed=1 ${4:-}"
    echo quit
}

# serves SETTINGS: the bench starts, and ends without a request; its output in $WORK/hello.
serves() {
    printf 'quit\n' | STAND_IN=$1 LD_LIBRARY_PATH=$folder timeout 100 "$BENCH" --serve --workspace 64K \
        >"$WORK/hello" 2>"$WORK/err" || fail "$1: the bench does not serve"
}

# gentables CODE SETTINGS ARGUMENT...: gentables with these stand-ins and this exit code.
gentables() {
    wanted_status=$1 settings=$2 status=0
    shift 2
    STAND_IN=$settings LD_LIBRARY_PATH=$folder timeout 300 "$GENTABLES" "$@" >"$WORK/out" 2>"$WORK/err" ||
        status=$?
    [ "$status" = "$wanted_status" ] || fail "$settings, $*: exit code $status"
}

# Puts a script that only runs the program into $WORK/bin, in place of compute-sanitizer, which needs a GPU.
sanitizer_in_place() {
    mkdir -p "$WORK/bin"
    cat >"$WORK/bin/compute-sanitizer" <<'END'
#!/bin/sh
while :; do
    case $1 in
    --*=*) shift ;;
    --*) shift 2 ;;
    *) break ;;
    esac
done
exec "$@"
END
    chmod +x "$WORK/bin/compute-sanitizer"
}

above_0='[0-9.]*[1-9][0-9.]*' # a number of a table, as a pattern

# all_timed STRATEGIES COMMAND...: runs `bench`, or another function that sets $status; each of these has a
# time in the output, and nothing is wrong.
all_timed() {
    wanted_strategies=$1
    shift
    "$@"
    [ "$status" = 0 ] || fail "$*: exit code $status"
    for strategy in $wanted_strategies; do
        grep -q "^  *[0-9].* sum  *$strategy  *$above_0 .* 0\$" "$WORK/out" ||
            fail "$*: $strategy has no time"
    done
    grep -q "^# Out of bounds values : 0 OK" "$WORK/out" || fail "$*: something is wrong"
}
