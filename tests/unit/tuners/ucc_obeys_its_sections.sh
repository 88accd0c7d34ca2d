#!/bin/sh
# ucc.conf: a program that follows UCC's rules returns the best algorithm at each measured size, number of
# ranks, and number of nodes, whichever section it visits last.
. "$(dirname -- "$0")/lib.sh"
mkdir -p "$WORK/data"
for placement in 2:1: 8:1: 8:2:.nodes2; do
    ranks=${placement%%:*} suffix=${placement##*:} nodes=${placement#*:}
    nodes=${nodes%%:*}
    {
        echo "$header,nodes,ranks_per_node"
        for size in 1024 32768 1048576; do
            knomial=$((size / 1024 + 5 * nodes * nodes * nodes))
            for choice in KNOMIAL:$knomial SRA_KNOMIAL:$((size / 8192 + 15)) RING:$((size / 16384 + 60)); do
                echo "$ranks,float32,$size,1,$((size / 4)),UCC_${choice%:*},NONE,allreduce,${choice#*:}" |
                    sed "s/\$/,$nodes,$((ranks / nodes))/"
            done
        done
    } >"$WORK/data/benchmark.tp$ranks$suffix.host.csv"
done
made=$WORK/out/ucc.conf
succeeds generate --data-dir "$WORK/data" --arch host --out "$WORK/out" --formats ucc
compiles ucc_rules
answers() { # BYTES RANKS PPN NODES ALGORITHM
    for order in "" backwards; do
        asked=$((asked + 1))
        # shellcheck disable=SC2086
        said=$(echo "$1 $2 $3 $4" | "$WORK/reader" "$made" $order) || die "not accepted"
        [ "$said" = "$5" ] || die "$1 B, $2 ranks on $4 nodes $order: $said, not $5"
    done
}
for team in '2 2 1' '8 8 1'; do
    # shellcheck disable=SC2086
    {
        answers 1024 $team knomial
        answers 32768 $team sra_knomial
        answers 1048576 $team ring
    }
done
answers 1024 8 4 2 sra_knomial
answers 32768 8 4 2 sra_knomial
answers 1048576 8 4 2 ring
answers 0 8 8 1 knomial
answers 18446744073709551615 8 4 2 ring
answers 1024 4 4 1 default
answers 1024 8 2 4 default
answers 1024 16 8 2 default

# Every byte has one range, and a wrong choice, or one that UCC does not accept, is noticed.
sed -n 's/^UCC_TL_UCP_TUNE=//p' "$made" | while read -r tune; do
    echo "$tune" | tr '#' '\n' | awk -F'[:-]' '$3 != next_first + 0 { bad = 1 }
        { last = next_first = $4 }
        END { exit bad || last != "inf" }' || exit 1
done || die "a gap or an overlap: $(cat "$made")"
sed 's/@knomial/@ring/' "$made" >"$WORK/wrong.conf"
[ "$(echo 1024 2 2 1 | "$WORK/reader" "$WORK/wrong.conf")" = ring ] || die "not noticed"
for fault in s/@knomial/@nomial/ s/team_size/size/ s/-inf/-infinity/ '1s/^#//'; do
    sed "$fault" "$made" >"$WORK/wrong.conf"
    if echo 9999999 2 2 1 | "$WORK/reader" "$WORK/wrong.conf" >"$stdout"; then die "accepted: $fault"; fi
done
counts ucc 'rules of UCC' '8263de47' $asked $asked
is_checked host ucc "$made" s/sra_knomial/ring/

grep -v UCC_ "$WORK/data/benchmark.tp2.host.csv" >"$WORK/none.csv"
rm "$WORK"/data/*
sed '$a 2,float32,1024,1,256,MPI,NONE,allreduce,1,1,2' "$WORK/none.csv" >"$WORK/data/benchmark.tp2.host.csv"
rejects 'no row of an algorithm of UCC.s; import osu_allreduce' \
    generate --data-dir "$WORK/data" --arch host --out "$WORK/out" --formats ucc
