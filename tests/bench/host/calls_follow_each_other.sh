#!/bin/sh
# Calls in a row without a barrier, by 2, 3 and 5 ranks: see back_to_back.c.
. "$(dirname "$0")/lib.sh"

BENCH=$BACK_TO_BACK
for ranks in 2 3 5; do
    run "$ranks" || fail "$ranks ranks: a call spoilt another"
done
