#!/bin/sh
# diff: for each cell the change, the loss of the old choice and whether the data supports it; for all cells
# whether any change is material, with few false alarms; every format; exit codes.
. "$SOURCE/tests/readers/lib.sh"
columns=$(head -1 "$SOURCE/tables/host/benchmark.tp2.host.csv")

# folder NAME: rows and table.csv of `cells` on standard input: tokens, ONESHOT, TWOSHOT, half interval.
folder() {
    mkdir -p "$WORK/$1"
    {
        echo "$columns"
        while read -r tokens one two half; do
            for strategy in "ONESHOT $one fp32" "TWOSHOT $two fp32"; do
                # shellcheck disable=SC2086
                set -- $strategy
                echo "$tokens $1 $2 $half $3"
            done
        done | awk '{ printf "2,bfloat16,%d,%d,1024,%s,NONE,allreduce,%s,%.4f,%.4f,%s,%s,dedicated,,\n",
            2048 * $1, $1, $2, $3, $3 - $4, $3 + $4, "100,1,9,9,0.1,0.5,eager", $5 }'
    } >"$WORK/$1/benchmark.tp2.host.csv"
}
tables() { # FOLDER OPTION...
    folder=$WORK/$1
    shift
    succeeds generate --data-dir "$folder" --arch host --out "$folder" --formats table --choose corner "$@"
}
prints() { # PATTERN
    grep -Eq -- "$1" "$stdout" || die "not printed: $1"
}

# 40 cells; the new rows change 10 of them within the noise, which changes one choice, and one cell for good.
awk 'BEGIN { for (i = 1; i <= 40; i++) print i, 10, 12, 0.2 }' | folder old
awk 'BEGIN { for (i = 1; i <= 40; i++) {
    if (i == 7) print i, 12, 10, 0.2
    else if (i % 4 == 0) print i, 10, i == 8 ? 9.95 : 10.02, 0.2
    else print i, 10, 12, 0.2 } }' |
    folder new
tables old
tables new
diff() { "$GENTABLES" diff --choose corner "$@"; }
ends_with 1 diff "$WORK/old/table.csv" "$WORK/new" --rows "$WORK/new"
prints '^! .*hidden 1024, 7 tokens: ONESHOT -> TWOSHOT: the old choice loses time \(the old takes \+20\.0%\)'
prints '^  .* 8 tokens: ONESHOT -> TWOSHOT: within noise \(the old takes \+0\.5%\)'
prints '^host: 2 of 40 cells differ, 1 of them materially'
[ "$(wc -l <"$stdout")" = 3 ] || die "not a line for each change"

# The other way round the new choice loses; a generous threshold, and noise alone, are not material.
ends_with 1 diff "$WORK/new" "$WORK/old" --rows "$WORK/new" --fail-on material
prints '7 tokens: TWOSHOT -> ONESHOT: the new choice loses time \(the old takes -16\.7%\)'
ends_with 0 diff "$WORK/old" "$WORK/new" --rows "$WORK/new" --fail-on material --threshold 0.5
ends_with 0 diff "$WORK/old" "$WORK/old"
prints '^host: 0 of 40 cells differ$'

# Many cells that differ only by chance: a difference of 2.3 standard errors in one of 40 is none.
awk 'BEGIN { for (i = 1; i <= 40; i++) if (i == 9) print i, 10.53, 10, 0.2; else print i, 10, 12, 0.2 }' |
    folder chance
tables chance
ends_with 0 diff "$WORK/old" "$WORK/chance" --rows "$WORK/chance" --fail-on material
prints '9 tokens: .*within noise'
awk 'BEGIN { for (i = 9; i <= 9; i++) print i, 10, 12, 0.2 }' | folder one
awk 'BEGIN { for (i = 9; i <= 9; i++) print i, 10.53, 10, 0.2 }' | folder one_new
tables one
tables one_new
ends_with 1 diff "$WORK/one" "$WORK/one_new" --rows "$WORK/one_new" --fail-on material # the same in one cell

# A choice for a bin is judged over the bin: at 4 tokens alone TWOSHOT is faster, over the bin ONESHOT.
printf '1 5 20 0.2\n4 10 9 0.2\n16 20 60 0.2\n' | folder bins
succeeds generate --data-dir "$WORK/bins" --arch host --out "$WORK/bins" --formats table
sed 's/,4,ONESHOT,10.0000,TWOSHOT/,4,TWOSHOT,9.0000,ONESHOT/' "$WORK/bins/table.csv" >"$WORK/corner.csv"
ends_with 1 "$GENTABLES" diff "$WORK/corner.csv" "$WORK/bins"
prints '^! .* 4 tokens: TWOSHOT -> ONESHOT: the old choice loses time \(the old takes \+31\.2%\)'
ends_with 1 diff "$WORK/corner.csv" "$WORK/bins"
prints '4 tokens: .* the new choice loses time \(the old takes -10\.0%\)'
mv "$WORK/corner.csv" "$WORK/table.csv"
ends_with 1 "$GENTABLES" check --data-dir "$WORK/bins" --arch host --tables "$WORK" --formats table \
    --against none
prints 'table.csv: 1 of 3 cells differ, 1 of them materially'

# Cells of only one side, and cells without times.
sed '/,3,ONESHOT/d; s/,5,ONESHOT.*/,5,unmeasured,,,,,,,,/' "$WORK/old/table.csv" >"$WORK/less.csv"
ends_with 1 diff "$WORK/old/table.csv" "$WORK/less.csv"
prints '3 tokens: ONESHOT -> unmeasured: has no choice any more'
prints '5 tokens: ONESHOT -> unmeasured'
sed 's/TWOSHOT,10.0000,ONESHOT,0.2000/MPI_RING,10.0000,MPI,0.2000/' "$WORK/new/table.csv" >"$WORK/other.csv"
ends_with 1 diff "$WORK/old/table.csv" "$WORK/other.csv"
prints 'no times of both'

# The formats.
ends_with 1 diff "$WORK/old" "$WORK/new" --format md
prints '^\| 2 \| NONE \| 1024 \| 7 \| ONESHOT \| TWOSHOT \| \+20\.0% \| \*\*the old choice loses time\*\* \|'
ends_with 1 diff "$WORK/old" "$WORK/new" --format github
prints '^::error file=[^:,]*,title=tables of host::TP 2 .*\+20\.0%25\)'
ends_with 1 diff "$WORK/old" "$WORK/new" --format junit --out "$WORK/junit.xml"
[ ! -s "$stdout" ] || die "wrote to standard output, too"
ends_with 1 diff "$WORK/old" "$WORK/new" --format json --out "$WORK/diff.json"
if command -v python3 >"$stdout"; then
    ends_with 0 python3 - "$WORK" <<'END'
import json
import sys
import xml.etree.ElementTree as tree

suite = tree.parse(sys.argv[1] + "/junit.xml").getroot()
assert suite.get("tests") == str(len(suite.findall("testcase"))) == "3", suite.attrib
assert suite.get("failures") == str(len(suite.findall("*/failure"))) == "1"
found = json.load(open(sys.argv[1] + "/diff.json"))
assert (found["compared"], found["changed"], found["material"]) == (40, 2, 1), found
assert [c["num_tokens"] for c in found["changes"] if c["material"]] == [7]
END
fi

# check prints the same for table.csv.
sed 's/,7,ONESHOT,/,7,TWOSHOT,/' "$WORK/old/table.csv" >"$WORK/table.csv"
ends_with 1 "$GENTABLES" check --data-dir "$WORK/old" --arch host --tables "$WORK" --formats table
prints 'table.csv: 1 of 40 cells differ, 1 of them materially'

# TensorRT-LLM's header, against the table that it was made of: facts that it cannot hold are no change.
# (Chosen at the corners of the bins: else each is chosen for its own reader's bins.)
succeeds generate --data-dir "$golden" --arch sm90 --out "$WORK/sm90" --choose corner
ends_with 1 diff "$WORK/sm90/table.csv" "$WORK/sm90/generated_lookup_table.cpp"
prints '^sm90: 1 of 8 cells differ' && prints 'SYMM_MEM -> NCCL' # the header has no name for SYMM_MEM
sed 's/{4,8,8,8,/{5,8,8,8,/' "$WORK/sm90/generated_lookup_table.cpp" >"$WORK/header.cpp"
ends_with 1 diff "$WORK/sm90/table.csv" "$WORK/header.cpp" --rows "$golden"
prints 'ONESHOT -> TWOSHOT'

# Invalid input.
rejects 'is of host, .* of sm90' diff "$WORK/old/table.csv" "$WORK/sm90/table.csv"
rejects 'nowhere' diff "$WORK/old/table.csv" "$WORK/nowhere"
rejects 'one of text, md, json, junit, github' diff "$WORK/old" "$WORK/new" --format yaml
rejects '--alpha: "2" is not a number from 0 to 1' diff "$WORK/old" "$WORK/new" --alpha 2
mkdir "$WORK/empty"
rejects 'empty: neither table.csv nor' diff "$WORK/old" "$WORK/empty"
