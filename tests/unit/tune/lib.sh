#!/bin/sh
# Shared by the tests of tune. Sourced. BENCH, GENTABLES, PLUGINS, FAULT_CLOCK_LIBRARY and WORK come from
# CMakeLists.txt.
[ $# = 0 ] || WORK=$WORK/${1%% *} # see cases
. "$SOURCE/tests/lib.sh"
XDG_CACHE_HOME=$WORK/cache
export XDG_CACHE_HOME

# cases "$@": each line of stdin is a command. Some run at once, each by this script in a folder of its own,
# called with the number of a line and the line.
cases() {
    if [ $# != 0 ]; then
        eval "${1#* }"
    else
        grep -n . | sed 's/:/ /' | xargs -d '\n' -P 6 -n 1 sh "$0" || fail "some of the cases, see above"
    fi
}

# tune ARGUMENT...: `samples` samples (5); exit code in $status, its output in $WORK/out and $WORK/err.
tune() {
    status=0
    rm -f "$WORK/clock"
    env ${preload:+"LD_PRELOAD=$preload" FAULT_CLOCK="$WORK/clock"} \
        "$GENTABLES" tune --bench "$BENCH" --samples "${samples:-5}" --warm-up 1 "$@" >"$WORK/out" \
        2>"$WORK/err" || status=$?
}

# tuned ARGUMENT...: the same, with exit code 0.
tuned() {
    tune "$@"
    [ "$status" = 0 ] || fail "$* ended with $status: $(cat "$WORK/err")"
}

# gentables ARGUMENT...: any other command of it, with exit code 0.
gentables() {
    "$GENTABLES" "$@" >"$WORK/out" 2>"$WORK/err" || fail "$*: $(cat "$WORK/out" "$WORK/err")"
}

# hurries: if a plug-in hangs, the clock runs fast up to the last seconds of a call's share of $timeout
# (tests/system/faults/clock.c, bench/trial/run_input.c).
timeout=30
hurries() {
    preload=$FAULT_CLOCK_LIBRARY
    export FAULT_CLOCK_SKIP=$((timeout * 9 / 10 - 2))
}

# launcher: makes $WORK/launcher, which runs the script on stdin, and then starts as many ranks as its first
# argument, by mpirun.
launcher() {
    . "$SOURCE/tests/mpirun.sh"
    {
        printf '#!/bin/sh\nranks=$1\nshift\n'
        cat
        echo "exec $mpirun -n \"\$ranks\" \"\$@\""
    } >"$WORK/launcher"
    chmod +x "$WORK/launcher"
}
