#!/bin/sh
# Where the choice changes from size to size, the C header searches by octaves if each has few borders, else
# by halving; either returns the choice of each cell of table.csv, at its border, and just above it.
. "$SOURCE/tests/lib.sh"

command -v cc >/dev/null || skip "no C compiler"

# rows NAME TOKENS HIDDEN_SIZES: rows with one of three strategies as the fastest, in no regular order.
rows() {
    mkdir "$WORK/$1"
    awk -v tokens="$2" -v hidden="$3" 'BEGIN {
        split("NCCL ONESHOT TWOSHOT", strategy, " ")
        print "world_size,dtype,size,num_tokens,hidden_size,strategy,fusion,op,time (us)"
        split(tokens, t, " "); split(hidden, h, " ")
        for (i in t) for (j in h) for (s = 1; s <= 3; s++)
            printf "2,bfloat16,%d,%d,%d,%s,NONE,allreduce,%d\n", 2 * t[i] * h[j], t[i], h[j], strategy[s],
                10 + 10 * ((t[i] * 7 + h[j] * 3 + int(t[i] / 3) + s) % 3)
    }' >"$WORK/$1/benchmark.tp2.sm90.csv"
    succeeds generate --data-dir "$WORK/$1" --arch sm90 --formats c,table
}

# asks NAME: a program that asks for each cell, and on both sides of the border to the next larger one.
asks() {
    cat <<'END'
#include <stdio.h>
#include <string.h>
#include "allreduce_table.h"
static int wrong;
static void expect(int hidden, int tokens, const char *name) {
    const char *got = gentables_sm90_strategy_name(
        gentables_sm90_select(2, GENTABLES_SM90_FUSION_NONE, hidden, tokens));
    if (strcmp(got, name) == 0) return;
    printf("hidden %d, tokens %d: %s, not %s\n", hidden, tokens, got, name);
    wrong++;
}
int main(void) {
END
    awk -F, 'NR > 1 && $9 != "unmeasured" {
        choice[$7, $8] = $9
        if (!(($7, "h") in seen)) { seen[$7, "h"] = 1; hidden[++hidden_sizes] = $7 + 0 }
        if (!(($8, "t") in seen)) { seen[$8, "t"] = 1; tokens[++token_counts] = $8 + 0 }
    }
    function border(low, high) { return int(sqrt(low * high)) }
    function expect(h, t, name) { printf "    expect(%d, %d, \"%s\");\n", h, t, name }
    END {
        for (i = 1; i <= hidden_sizes; i++) for (j = 1; j <= token_counts; j++) {
            h = hidden[i]; t = tokens[j]; name = choice[h, t]
            expect(h, t, name)
            if (j < token_counts) {
                expect(h, border(t, tokens[j + 1]), name)
                expect(h, border(t, tokens[j + 1]) + 1, choice[h, tokens[j + 1]])
            } else {
                expect(h, 2147483647, name)
            }
            if (j == 1) expect(h, -1, name)
            if (i < hidden_sizes) {
                expect(border(h, hidden[i + 1]), t, name)
                expect(border(h, hidden[i + 1]) + 1, t, choice[hidden[i + 1], t])
            } else {
                expect(2147483647, t, name)
            }
        }
    }' "$WORK/$1/table.csv"
    printf '    return wrong != 0;\n}\n'
}

rows octaves "$(awk 'BEGIN { for (i = 0; i < 15; i++) printf "%d ", 2 ^ i }')" \
    "128 256 512 1024 2048 4096 8192"
rows between "1 2 4 8 16 24 32 48 64 96 128 192 256 384 512 768 1024 1536 2048 3072 4096" \
    "1024 1536 2880 4096"
rows dense "$(awk 'BEGIN { for (i = 0; i < 60; i++) printf "%d ", 1 + 37 * i }')" "128 288 448 608 768"
for name in octaves between; do
    grep -q '_place_from_.*num_tokens' "$WORK/$name/allreduce_table.h" || die "$name: not by octaves"
done
if grep -q '_place_from_.*num_tokens' "$WORK/dense/allreduce_table.h"; then die "dense: by octaves"; fi

# answers NAME: the header's choices are those of table.csv.
answers() {
    ends_with 0 cc -std=c99 -pedantic -Wall -Wextra -Wconversion -fsanitize=undefined,address -I "$WORK/$1" \
        "$WORK/$1/ask.c" -o "$WORK/ask"
    ends_with 0 "$WORK/ask"
}

for name in octaves between dense; do
    asks "$name" >"$WORK/$name/ask.c"
    [ "$(grep -c 'expect(' "$WORK/$name/ask.c")" -gt 300 ] || die "the program checks too little"
    answers "$name"
    # As a compiler without GNU's builtins reads it.
    sed -i 's/#ifdef __GNUC__/#if 0/' "$WORK/$name/allreduce_table.h"
    answers "$name"
done
