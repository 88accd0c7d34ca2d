#!/bin/sh
# Calls in a row without a barrier, by 2, 3 and 5 ranks: see calls_in_a_row.c.
. "$(dirname "$0")/lib.sh"

BENCH=$CALLS_IN_A_ROW
for ranks in 2 3 5; do
    run "$ranks" || fail "$ranks ranks: a call spoilt another"
done
