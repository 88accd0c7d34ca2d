#!/bin/sh
# A rank that is killed while others wait for it: the bench ends with an error, and no process and no segment
# is left.
. "$(dirname "$0")/lib.sh"
# The folder of Open MPI's segments; the bench's own never have a name.
mkdir "$WORK/shm"
OMPI_MCA_btl_vader_backing_directory=$WORK/shm
export OMPI_MCA_btl_vader_backing_directory

# rank_of PID: its rank in mpirun's numbering.
rank_of() {
    tr '\0' '\n' <"/proc/$1/environ" | sed -n 's/^OMPI_COMM_WORLD_RANK=//p'
}

# begins RANKS ARGUMENT...: a long run; waits until its first result is printed. Then all ranks run, and
# $victim is rank 1.
begins() {
    count=$1
    rm -f "$WORK/out"
    mkfifo "$WORK/out"
    run "$@" -b 1M -e 1M -f 2 --samples 100000 --budget 100 >"$WORK/out" 2>"$WORK/err" &
    launcher=$!
    exec 8<"$WORK/out"
    line=
    until [ "${line#\#}" != "$line" ]; do
        read -r line <&8 || fail "the bench did not start: $(cat "$WORK/err")"
    done
    cat <&8 >/dev/null & # it never waits for a reader
    exec 8<&-
    pids=$(pgrep -f "^$BENCH .*--samples 100000")
    [ "$(echo "$pids" | wc -w)" = "$count" ] || fail "not $count ranks: $pids"
    victim=
    for pid in $pids; do
        [ "$(rank_of "$pid")" != 1 ] || victim=$pid
    done
    [ -n "$victim" ] || fail "no rank 1 among $pids"
}

# fails_by SIGNAL: after rank 1 got the signal.
fails_by() {
    kill "-$1" "$victim"
    if wait "$launcher"; then fail "a rank that got SIG$1 went unnoticed"; fi
    ! pgrep -f "^$BENCH .*--samples 100000" >"$WORK/left" || fail "processes are left: $(cat "$WORK/left")"
    [ -z "$(ls -A "$WORK/shm")" ] || fail "segments are left"
}

# Rank 1 is killed after the first result.
begins 3 --strategies ONESHOT,TWOSHOT
fails_by KILL

# A rank that is stopped: the others end at the deadline, and report it.
begins 2 --timeout 5 --strategies ONESHOT
fails_by STOP
printed err "rank 1 is stopped, in .*; rank 0 waited for 5 s"
