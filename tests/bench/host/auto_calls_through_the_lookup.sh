#!/bin/sh
# AUTO calls the lookup of the incumbent's table and uses the strategy that it returns; if that cannot run,
# AUTO falls back. Without a table, or with a table of unknown strategies, AUTO has a reason in place of a
# time.
. "$(dirname "$0")/lib.sh"
needs cc

# module NAME: its lookup returns the second strategy from 1024 elements a token on, and prints that.
module() {
    cat >"$WORK/lookup.c" <<END
#include <stdio.h>
int incumbent_choose(int tp_size, int fusion, int hidden_size, int num_tokens) {
    static int asked;
    if (!asked++) fprintf(stderr, "asked: %d %d %d %d\n", tp_size, fusion, hidden_size, num_tokens);
    return hidden_size >= 1024;
}
const char *incumbent_name(int strategy) {
    static const char *const names[] = {"MPI", "$1"};
    return strategy == 0 || strategy == 1 ? names[strategy] : "unknown";
}
END
    cc -shared -fPIC "$WORK/lookup.c" -o "$WORK/lookup.so" || fail "no module"
}
GENTABLES_INCUMBENT=$WORK/lookup.so
export GENTABLES_INCUMBENT

module TWOSHOT
for tokens in 1 4; do # TWOSHOT cannot split one token over two ranks
    run 2 -b $((tokens * 2048)) -e $((tokens * 2048)) --hidden-size 1024 --samples 3 --strategies AUTO,MPI \
        >"$WORK/out" 2>"$WORK/err" || fail "$tokens tokens: $(cat "$WORK/out" "$WORK/err")"
    awk '!/^#/ && $5 == "AUTO" && $6 > 0 && $9 == 0 { found = 1 } END { exit !found }' "$WORK/out" ||
        fail "AUTO has no time: $(cat "$WORK/out")"
    printed err "^asked: 2 0 1024 $tokens"
done
for name in NOSUCH AUTO; do
    module $name
    run 2 -b 2K -e 2K --samples 1 --strategies AUTO >"$WORK/out" ||
        fail "a lookup with an unavailable strategy: the bench fails"
    printed out "AUTO .*the incumbent's table has $name, which this bench lacks"
done
GENTABLES_INCUMBENT=$WORK/none.so
run 2 -b 2K -e 2K --samples 1 --strategies AUTO >"$WORK/out" || fail "no incumbent"
printed out "AUTO .*no incumbent"
# It is measured only if it is named.
run 2 -b 2K -e 2K --samples 1 >"$WORK/out" || fail "the bench fails with all strategies"
if grep -q AUTO "$WORK/out"; then fail "AUTO was not requested"; fi
