#!/bin/sh
# generate --stamp: with a stamp, tables are rendered only if a table, an input, an option or the program has
# changed. Damaged rows of the same size and date show whether rows are read.
. "$SOURCE/tests/lib.sh"

data=$WORK/data
rows=$data/benchmark.tp2.sm90.csv
mkdir -p "$data"
echo "$header" >"$rows"
for tokens in 1 2 4; do
    for strategy in NCCL ONESHOT; do
        echo "2,bfloat16,$((tokens * 2048)),$tokens,1024,$strategy,NONE,allreduce,$tokens.5" >>"$rows"
    done
done

generate() {
    "$GENTABLES" generate --data-dir "$data" --arch sm90 --out "$WORK/out" --stamp "$WORK/b/stamp" "$@"
}
damage() {
    cp -p "$rows" "$WORK/good"
    head -c "$(wc -c <"$WORK/good")" /dev/zero >"$rows"
    touch -r "$WORK/good" "$rows"
}
mend() { cp -p "$WORK/good" "$rows"; }
# renders WHAT OPTION...: with damaged rows, generate must fail.
renders() {
    what=$1
    shift
    damage
    if generate "$@" >"$stdout" 2>"$stderr"; then die "not rendered again after a change of $what"; fi
    mend
}

generate >"$stdout" 2>"$stderr" || die "generate failed"
[ ! -s "$stderr" ] || die "a note was printed, so there is no stamp"
sed 's/^written  /unchanged/' "$stdout" >"$WORK/first"
[ -s "$WORK/b/stamp" ] || die "no stamp"

damage
generate >"$stdout" 2>"$stderr" || die "tables were rendered although nothing has changed"
cmp -s "$stdout" "$WORK/first" || die "another output than $(cat "$WORK/first")"
mend

# Options of gentables.lua count as options; the message about them prevents no stamp.
cd "$WORK"
rm b/stamp
echo 'return { generate = { choose = "corner" } }' >gentables.lua
generate >"$stdout" 2>"$stderr" || die "generate failed with defaults"
[ -s b/stamp ] || die "no stamp with defaults"
rm gentables.lua
renders "an option of gentables.lua"
generate >"$stdout" 2>"$stderr" || die "generate failed without defaults"

cp "$WORK/out/table.csv" "$WORK/table.csv"
echo edited >>"$WORK/out/table.csv"
renders "a table"
generate >"$stdout" 2>"$stderr" || die "generate failed"
cmp -s "$WORK/out/table.csv" "$WORK/table.csv" || die "an edited table was not mended"
rm "$WORK/out/table.csv"
generate >"$stdout" 2>"$stderr" || die "generate failed"
cmp -s "$WORK/out/table.csv" "$WORK/table.csv" || die "a removed table was not written again"

renders "the options" --choose corner
cp "$WORK/good" "$rows" # with another date
renders "the rows"
generate >"$stdout" 2>"$stderr" || die "generate failed"
cp "$rows" "$data/benchmark.tp4.sm90.csv"
renders "the folder"
rm "$data/benchmark.tp4.sm90.csv"

mkdir "$WORK/home"
cp -pR "${GENTABLES_HOME:-$SOURCE}/generator" "${GENTABLES_HOME:-$SOURCE}/templates" "$WORK/home/"
GENTABLES_HOME=$WORK/home
export GENTABLES_HOME
generate >"$stdout" 2>"$stderr" || die "generate failed"
generate >"$stdout" 2>"$stderr" || die "generate failed"
echo "-- edited" >>"$WORK/home/generator/formats/list.lua"
renders "the program"
generate >"$stdout" 2>"$stderr" || die "generate failed"
echo "edited" >>"$WORK/home/templates/tables/thresholds.json.tmpl"
renders "a template"

# A note is printed again, so there is no stamp.
echo "2,bfloat16,32768,8,2048,NCCL,NONE,allreduce,9.5" >>"$rows"
rm -r "$WORK/out"
for _ in 1 2; do
    generate >"$stdout" 2>"$stderr" || die "generate failed"
    [ -s "$stderr" ] || die "no note about cells without rows"
done
