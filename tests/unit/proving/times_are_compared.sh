#!/bin/sh
# gentables prove --time: a file with which a program is slower, or faster, is noticed, and so is a command
# that reads the file by itself.
. "$(dirname -- "$0")/lib.sh"

# The time with the file and without it: the program does far more with it, or without it.
timed() { # CODE ARGUMENT...
    code=$1
    shift
    # shellcheck disable=SC2086
    ends_with "$code" "$GENTABLES" prove --time --turns 6 "$rules" -- $run 2 \
        "$WORK/allreduces" "$@"
}
timed 1 with=300
has '^ratio +[0-9.]+ .95 % interval [0-9.]+ to [0-9.]+.: slower with the file$' "$stdout"
timed 0 without=300
has '^ratio +0[.][0-9]+ .95 % interval 0[.][0-9]+ to 0[.][0-9]+.: faster with the file$' "$stdout"
# shellcheck disable=SC2086
{
    rejects 'ompi_rules.conf: is also read without prove; remove it' prove --time "$rules" -- $run 2 \
        --mca coll_tuned_use_dynamic_rules 1 --mca coll_tuned_dynamic_rules_filename "$rules" ./allreduces 256
}
rejects '--turns: "2" is not a whole number from 6' prove --time --turns 2 "$rules" -- true
rejects '--turns 9 goes with --time' prove --turns 9 "$rules" -- true
