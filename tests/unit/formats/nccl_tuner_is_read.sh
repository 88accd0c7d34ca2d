#!/bin/sh
# nccl_tuner.csv: a strict reader accepts it, and NCCL's example plugin, which accepts anything, returns the
# best algorithm at each measured size, and a measured one at every other size.
. "$SOURCE/tests/readers/lib.sh"

# A row for each: tp, size, algorithm, protocol, channels, time.
mkdir -p "$WORK/data"
row_of() { # TP SIZE STRATEGY TIME
    echo "$1,float32,$2,1,$(($2 / 4)),$3,NONE,allreduce,$4"
}
for tp in 2 8; do
    {
        echo "$header"
        for size in 1024 32768 1048576 16777216; do
            row_of $tp $size NCCL_RING_SIMPLE_16CH $((size / 16384 + 30))
            row_of $tp $size NCCL_RING_LL128_8CH $((size / 8192 + 15))
            row_of $tp $size NCCL_TREE_LL_2CH $((size / 1024 + 5))
            row_of $tp $size NCCL_NVLS_SIMPLE_24CH $((size / 20000 + 100 * (9 - tp)))
            row_of $tp $size NCCL_RING_LL 1 # NCCL's own choice of channels: no rule can express it
            row_of $tp $size NCCL 1
        done
    } >"$WORK/data/benchmark.tp$tp.sm90.csv"
done
succeeds generate --data-dir "$WORK/data" --arch sm90 --out "$WORK" --formats nccl
tuner=$WORK/nccl_tuner.csv
[ "$(awk 'length >= 255' "$tuner")" = "" ] || die "a line is too long"
has '^# For the example plugin of NCCL 2.30.3 or later' "$tuner"
has 'that NCCL_TUNER_PLUGIN names; NCCL_TUNER_CONFIG_FILE names this file' "$tuner"

for compiler in $(compilers c); do
    "$compiler" -std=c17 -D_GNU_SOURCE -Wall -Wextra -Werror "$SOURCE/tests/unit/formats/tuner.c" \
        -o "$WORK/tuner"
done
asked=0
returns() { # RANKS BYTES ANSWER
    said=$(echo "$1 $2" | "$WORK/tuner" "$tuner") || die "not read: $said"
    [ "$said" = "$3" ] || die "$1 ranks, $2 bytes: $said, not $3"
    asked=$((asked + 1))
}
for tp in 2 8; do
    returns $tp 1024 "tree ll 2"
    returns $tp 32768 "ring ll128 8"
done
returns 8 1048576 "ring simple 16"
returns 2 0 "tree ll 2"
returns 2 1048576 "ring simple 16"
returns 8 16777216 "nvls simple 24"
returns 2 16777216 "ring simple 16"
returns 2 18446744073709551615 "ring simple 16"
returns 4 1024 "default default 1"
counts nccl "rules of NCCL's example plugin" 2.30.7 $asked $asked
sed '0,/tree,ll,2/s//ring,ll,2/' "$tuner" >"$WORK/wrong.csv"
[ "$(echo 2 1024 | "$WORK/tuner" "$WORK/wrong.csv")" = 'ring ll 2' ] || die "a wrong choice is not noticed"
# Nothing between the rules, and no overlap.
for tp in 2 8; do
    awk -F, -v tp=$tp '!/^#/ && $8 == tp { if ($2 != next_first + 0) bad = 1; last = $3; next_first = $3 + 1 }
        END { exit bad || last != "18446744073709551615" }' "$tuner" ||
        die "TP $tp has a gap: $(cat "$tuner")"
done

# Without rows that name channels, the format is rejected.
grep -v CH, "$WORK/data/benchmark.tp2.sm90.csv" >"$WORK/data/benchmark.tp2.sm100.csv"
ends_with 2 "$GENTABLES" generate --data-dir "$WORK/data" --arch sm100 --out "$WORK/out" --formats nccl
one_line 'nccl_tuner.csv: no row of an algorithm, protocol and number of channels .* measure'
succeeds generate --data-dir "$WORK/data" --arch sm100 --out "$WORK/out"
[ ! -e "$WORK/out/nccl_tuner.csv" ] || die "written without rows"
