# Shared by tests of the folder for a machine with a GPU: a copy of it, and verify.sh there. Sourced after
# lib_stand_in.sh; VERIFY: the folder.
# shellcheck shell=sh disable=SC2034,SC2154

taken=$WORK/taken
cp -r "$VERIFY" "$taken"

# needs_the_system PROGRAM: no other library is loaded as it starts.
needs_the_system() {
    readelf -d "$1" >"$WORK/out" || fail "$1 is no program"
    others=$(sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' "$WORK/out" |
        grep -vE '^(lib(c|m|dl|rt|pthread)|ld-linux[-a-z0-9_]*)\.so\.[0-9]+$' || true)
    [ -z "$others" ] || fail "$1 needs $others"
}

# verify CODE NAME=VALUE...: it has this exit code.
verify() {
    wanted_status=$1 status=0
    shift
    env "$@" STAND_IN="gpus=1" LD_LIBRARY_PATH="$folder" GENTABLES_VERIFY_TP=2 GENTABLES_VERIFY_HIDDEN=160 \
        GENTABLES_VERIFY_MOST_TOKENS=8 GENTABLES_VERIFY_ROWS=1 GENTABLES_VERIFY_SAMPLES=2 \
        GENTABLES_VERIFY_TOKENS=1 GENTABLES_VERIFY_CHECK_TOKENS=3 GENTABLES_VERIFY_KERNELS_TOKENS=2 \
        GENTABLES_VERIFY_WORKSPACE=256K GENTABLES_VERIFY_PATIENCE=500 GENTABLES_VERIFY_DEADLINE=60 \
        timeout 900 sh "$taken/verify.sh" "$taken" "$WORK/verified" >"$WORK/out" 2>"$WORK/err" || status=$?
    [ "$status" = "$wanted_status" ] || fail "$*: exit code $status"
}

# only_prints LINE: replaces the program by a script that prints this and fails.
only_prints() {
    printf '#!/bin/sh\necho "%s" >&2\nexit 2\n' "$1" >"$taken/gentables-bench-cuda"
    chmod +x "$taken/gentables-bench-cuda"
}

# never_starts: replaces the program by a script that hangs when it is to take requests.
never_starts() {
    printf '#!/bin/sh\ncase "$*" in *--serve*) exec tail -f /dev/null ;; esac\n' \
        >"$taken/gentables-bench-cuda"
    chmod +x "$taken/gentables-bench-cuda"
}

other_gpu="gentables-bench: kernels were built for sm_80, and this GPU is sm_90"
