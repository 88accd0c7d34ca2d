#!/bin/sh
# The C header compiles without a warning as C and C++, returns the strategy of every cell of table.csv, and
# for all other shapes the documented one: that of the nearer size, of the outermost one, or the fallback.
. "$SOURCE/tests/lib.sh"

{
    cat <<'END'
#include <stdio.h>
#include <string.h>

#include "allreduce_table.h"

static int wrong;

static void expect(int tp, enum gentables_sm90_fusion fusion, int hidden, int tokens, const char *name,
                   int measured) {
    const char *got = gentables_sm90_strategy_name(gentables_sm90_select(tp, fusion, hidden, tokens));
    if (strcmp(got, name) == 0 && gentables_sm90_is_measured(tp, fusion, hidden, tokens) == measured) return;
    printf("TP %d, fusion %d, hidden %d, tokens %d: %s, not %s\n",
           tp, (int)fusion, hidden, tokens, got, name);
    wrong++;
}

int main(void) {
END
    awk -F, 'NR > 1 && $4 == "bfloat16" && $5 == "allreduce" {
        known = $9 != "unmeasured"
        printf "    expect(%d, GENTABLES_SM90_FUSION_%s, %d, %d, \"%s\", %d);\n", $2, $3, $7, $8,
            known ? $9 : "NCCL_SYMMETRIC", known
    }' "$golden/table.csv"
    # Between 1 and 16 tokens the border is 4, their geometric mean; between hidden 1024 and 2880 it is 1717.
    cat <<'END'
    expect(2, GENTABLES_SM90_FUSION_RESIDUAL_RMS_NORM, 1024, 4, "ONESHOT", 1);
    expect(2, GENTABLES_SM90_FUSION_RESIDUAL_RMS_NORM, 1024, 5, "TWOSHOT", 1);
    expect(2, GENTABLES_SM90_FUSION_NONE, 1717, 256, "NCCL_SYMMETRIC", 1);
    expect(2, GENTABLES_SM90_FUSION_NONE, 1718, 256, "NCCL_SYMMETRIC", 0);
    expect(2, GENTABLES_SM90_FUSION_NONE, 1024, 2147483647, "NCCL_SYMMETRIC", 1);
    expect(2, GENTABLES_SM90_FUSION_NONE, 2147483647, 1, "ONESHOT", 1);
    expect(2, GENTABLES_SM90_FUSION_NONE, 1, 1, "ONESHOT", 1);
    expect(2, GENTABLES_SM90_FUSION_NONE, 0, 0, "ONESHOT", 1);
    expect(2, GENTABLES_SM90_FUSION_NONE, -2147483647 - 1, -1, "ONESHOT", 1);
    expect(4, GENTABLES_SM90_FUSION_RESIDUAL_RMS_NORM, 1024, 1, "NCCL_SYMMETRIC", 0);
    expect(8, GENTABLES_SM90_FUSION_NONE, 1024, 1, "NCCL_SYMMETRIC", 0);
    expect(3, GENTABLES_SM90_FUSION_NONE, 1024, 1, "NCCL_SYMMETRIC", 0);
    expect(0, GENTABLES_SM90_FUSION_NONE, 1024, 1, "NCCL_SYMMETRIC", 0);
    expect(-2, GENTABLES_SM90_FUSION_NONE, 1024, 1, "NCCL_SYMMETRIC", 0);
    expect(2, GENTABLES_SM90_FUSION_RESIDUAL_RMS_NORM_QUANT_FP8, 1024, 1, "NCCL_SYMMETRIC", 0);
    /* Shapes share a cell just where one choice was made for them. */
    if (gentables_sm90_cell(2, GENTABLES_SM90_FUSION_RESIDUAL_RMS_NORM, 1024, 1) !=
            gentables_sm90_cell(2, GENTABLES_SM90_FUSION_RESIDUAL_RMS_NORM, 1000, 4) ||
        gentables_sm90_cell(2, GENTABLES_SM90_FUSION_RESIDUAL_RMS_NORM, 1024, 4) ==
            gentables_sm90_cell(2, GENTABLES_SM90_FUSION_RESIDUAL_RMS_NORM, 1024, 5) ||
        gentables_sm90_cell(2, GENTABLES_SM90_FUSION_NONE, 2880, 256) != -1 ||
        gentables_sm90_cell(8, GENTABLES_SM90_FUSION_NONE, 1024, 1) != -1) {
        puts("cells");
        wrong++;
    }
    return wrong != 0;
}
END
} >"$WORK/ask.c"
[ "$(grep -c 'expect(' "$WORK/ask.c")" -gt 25 ] || die "the program checks too little"

# The comment of a row has the least margin, the least confidence and the most regret of each of its
# strategies.
least=$(awk -F, '$2 == 2 && $3 == "RESIDUAL_RMS_NORM" && $9 == "ONESHOT" { printf "%.3g", 100 * $12 }' \
    "$golden/table.csv")
grep -q "/\* 1024: ONESHOT $least %; TWOSHOT" "$golden/allreduce_table.h" || die "no margin beside a row"

compiler=
for found in gcc clang cc; do
    command -v "$found" >/dev/null || continue
    compiler=${compiler:-$found} # the first one
    for language in "c -std=c99" "c -std=c17" "c++ -std=c++11" "c++ -std=c++17"; do
        # shellcheck disable=SC2086
        ends_with 0 "$found" -x $language -pedantic \
            -Wall -Wextra -Wshadow -Wconversion -Werror -I "$golden" \
            "$WORK/ask.c" -o "$WORK/ask"
        ends_with 0 "$WORK/ask"
    done
done
[ -n "$compiler" ] || skip "no C compiler"
asked=$(grep -c ' expect(.*);' "$WORK/ask.c")
version="$compiler $("$compiler" -dumpfullversion -dumpversion)"
counts c 'C99, C17, C++11 and C++17 programs' "$version" "$asked" "$asked"

# A wrong choice is noticed.
mkdir "$WORK/wrong"
sed 's/{0, 1, 2}}, /{1, 0, 2}}, /' "$golden/allreduce_table.h" >"$WORK/wrong/allreduce_table.h"
ends_with 0 "$compiler" -std=c99 -I "$WORK/wrong" "$WORK/ask.c" -o "$WORK/ask_wrong"
ends_with 1 "$WORK/ask_wrong"
has 'TWOSHOT, not ONESHOT' "$stdout"

# Tables of two archs in one program.
cp "$golden/benchmark.tp2.sm90.csv" "$WORK/benchmark.tp2.sm100.csv"
succeeds generate --data-dir "$WORK" --arch sm100 --out "$WORK/sm100" --formats c
cat >"$WORK/both.c" <<'END'
#include "allreduce_table.h"
#include "sm100/allreduce_table.h"
int main(void) {
    return (int)gentables_sm90_select(2, GENTABLES_SM90_FUSION_NONE, 1, 1) -
           (int)gentables_sm100_select(2, GENTABLES_SM100_FUSION_NONE, 1, 1);
}
END
ends_with 0 "$compiler" -std=c99 -Wall -Wextra -Werror -I "$golden" -I "$WORK" "$WORK/both.c" -o "$WORK/both"
ends_with 0 "$WORK/both"
