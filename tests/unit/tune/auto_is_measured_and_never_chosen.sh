#!/bin/sh
# AUTO, the call through an incumbent's lookup, takes part in a pass over many sizes, with the lookup's own
# choice for each, and is never chosen itself.
. "$(dirname "$0")/lib.sh"
command -v cc >"$WORK/cc" || skip "no C compiler"

# From 16 KiB of bfloat16 on the lookup returns TWOSHOT, which is faster there than MPI.
cat >"$WORK/lookup.c" <<'END'
int incumbent_choose(int tp_size, int fusion, int hidden_size, int num_tokens) {
    (void)tp_size, (void)fusion;
    return (long)hidden_size * num_tokens >= 8192;
}
const char *incumbent_name(int strategy) {
    static const char *const names[] = {"MPI", "TWOSHOT"};
    return strategy == 0 || strategy == 1 ? names[strategy] : "unknown";
}
END
cc -shared -fPIC "$WORK/lookup.c" -o "$WORK/lookup.so" || fail "no module"
GENTABLES_INCUMBENT=$WORK/lookup.so
export GENTABLES_INCUMBENT
tuned --op allreduce --sizes 1K:1M:4 --strategies AUTO,MPI --json
[ "$(grep -c '"strategy": "AUTO"' "$WORK/out")" = 6 ] || fail "AUTO has no time somewhere: $(cat "$WORK/out")"
[ "$(grep -c '^      "strategy": "[A-Z]' "$WORK/out")" = 6 ] || fail "not 6 choices: $(cat "$WORK/out")"
! grep -q '^      "strategy": "AUTO"' "$WORK/out" || fail "AUTO was chosen: $(cat "$WORK/out")"
