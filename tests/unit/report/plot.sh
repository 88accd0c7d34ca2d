#!/bin/sh
# gentables plot as a command: the documented names, formats and kinds; skipped rows are reported; invalid
# input ends in one line and leaves no picture.
. "$SOURCE/tests/lib.sh"
needs gnuplot

no_picture() {
    [ -z "$(find "$1" -type f 2>/dev/null)" ] || die "there is a picture, or what is left of one"
}

# cells FUSION TP: rows of two strategies in two cells.
cells() {
    for cell in '2048,1,1024' '4096,2,1024'; do
        for strategy in ONESHOT,3.5 TWOSHOT,4.5; do
            echo "$2,bfloat16,$cell,${strategy%,*},$1,allreduce,${strategy#*,}"
        done
    done
}

folder() {
    rm -rf "$WORK/data"
    mkdir -p "$WORK/data"
    for tp in 2 4; do
        { echo "$header" && cells NONE "$tp" && cells RESIDUAL_RMS_NORM "$tp"; } \
            >"$WORK/data/benchmark.tp$tp.sm90.csv"
    done
}

# The three pictures of each fusion and TP size, with their documented names and places.
folder
succeeds plot --data_dir "$WORK/data/" --arch sm90
for fusion in NONE RESIDUAL_RMS_NORM; do
    for tp in 2 4; do
        for kind in heatmap best_strategy strategy_difference_heatmap; do
            [ -s "$WORK/data/viz/$fusion/benchmark.tp$tp.sm90_$kind.png" ] || die "no $kind of $tp, $fusion"
        done
    done
done
[ "$(find "$WORK/data/viz" -type f | wc -l)" = 12 ] || die "further files"
grep -q '^TP 2, NONE: ONESHOT 100.0 %$' "$stdout" || die "no shares"
grep -q "^12 pictures in $WORK/data/viz$" "$stdout" || die "not counted"
[ ! -s "$stderr" ] || die "unexpected message"

# The folder as an argument, and lists as words.
succeeds plot "$WORK/data" --kinds heatmap scaling --formats svg png --out "$WORK/words"
[ "$(find "$WORK/words/viz" -type f | wc -l)" = 12 ] || die "not two kinds in two formats"

# All kinds, as SVG, elsewhere; and both formats.
echo 'print(#require("pictures.list").kinds)' >"$WORK/count.lua"
succeeds plot --data-dir "$WORK/data" --arch sm90 --out "$WORK/out" --kinds all --format svg
kinds=$("$GENTABLES" lua "$WORK/count.lua")
[ "$(find "$WORK/out/viz" -name '*.svg' | wc -l)" = $((4 * (kinds - 1) + 2)) ] ||
    die "not 4 SVGs of each kind, and 2 of that over TP sizes"
python3 -c 'import sys, xml.dom.minidom as m; [m.parse(path) for path in sys.argv[1:]]' \
    "$WORK"/out/viz/*/*.svg || die "that is no SVG"
succeeds plot --data-dir "$WORK/data" --arch sm90 --out "$WORK/both" --kinds scaling --format png,svg
[ "$(find "$WORK/both/viz" -type f | wc -l)" = 4 ] || die "not 2 PNGs and 2 SVGs"

# One picture by name. Files of several TP sizes need one.
one=$WORK/data/benchmark.tp2.sm90.csv
for kind in heatmap best_strategy strategy_difference_heatmap time_vs_size; do
    succeeds plot "$kind" "$one" --fusion NONE --out "$WORK/one.svg"
    [ -s "$WORK/one.svg" ] || die "no $kind"
    rm "$WORK/one.svg"
done
succeeds plot scaling "$one" "$WORK/data/benchmark.tp4.sm90.csv" --fusion NONE --out "$WORK/one.svg"
rejects 'tp2.sm90.csv: has TP 2, 4; --tp' plot heatmap "$one" "$WORK/data/benchmark.tp4.sm90.csv" \
    --fusion NONE --out "$WORK/one.png"
succeeds plot heatmap "$one" "$WORK/data/benchmark.tp4.sm90.csv" --tp 4 --fusion NONE --out "$WORK/one.png"
rm -f "$WORK/one.png" "$WORK/one.svg"

# The rows of other dtypes are skipped, with a message; an option selects them.
{ cells NONE 2 | sed 's/bfloat16/float16/; s/ONESHOT/NCCL/'; } >>"$one"
succeeds plot --data-dir "$WORK/data" --arch sm90 --out "$WORK/mixed" --kinds best_strategy --format svg
one_line 'shows bfloat16 allreduce .*left out: float16 allreduce'
succeeds plot best_strategy "$one" --fusion NONE --dtype fp16 --out "$WORK/one.svg"
grep -q 'NCCL: 2 of 2 cells' "$WORK/one.svg" || die "not the rows of float16"
rm "$WORK/one.svg"

# A TP size without rows of a fusion: a message, and no empty picture. A fusion without any rows is a usage
# error.
folder
{ echo "$header" && cells NONE 4; } >"$WORK/data/benchmark.tp4.sm90.csv"
succeeds plot --data-dir "$WORK/data" --arch sm90 --out "$WORK/gap" --kinds best_strategy,scaling --format svg
has 'best_strategy, RESIDUAL_RMS_NORM: TP 4 has no rows of RESIDUAL_RMS_NORM; no picture' "$stderr"
has 'scaling, RESIDUAL_RMS_NORM: there is one TP size only' "$stderr"
[ "$(find "$WORK/gap" -type f | wc -l)" = 4 ] || die "an empty picture"
rejects 'no rows of fusion RESIDUAL_RMS_NORM_QUANT_FP8; it has NONE, RESIDUAL_RMS_NORM' plot heatmap "$one" \
    --fusion RESIDUAL_RMS_NORM_QUANT_FP8 --out "$WORK/none/a.png"
no_picture "$WORK/none"

# One strategy in one cell.
rows "$WORK/single/benchmark.tp2.sm90.csv" '2,bfloat16,2048,1,1024,NCCL,NONE,allreduce,9.5'
succeeds plot --data-dir "$WORK/single" --arch sm90 --kinds all --format svg
[ "$(find "$WORK/single/viz" -name '*.svg' | wc -l)" = $((kinds - 1)) ] || die "not a picture of each kind"
one_line 'scaling, NONE: there is one TP size only; no picture'

# Markup and quotes in a machine's name are printed as they are, and run nothing.
mkdir "$WORK/names"
cp "$SOURCE/tables/host/benchmark.tp2.host.csv" "$SOURCE/tables/host/spec.lua" "$WORK/names"
python3 - "$SOURCE/tables/host/benchmark.tp2.host.json" "$WORK/names/benchmark.tp2.host.json" <<'END'
import json, sys
printed = json.load(open(sys.argv[1]))
printed["machine"]["cpu"] = "A\"quoted\" <b>&amp;</b> {/Bold x}_y `touch ran` $(touch ran) 'z' %s \\n"
json.dump(printed, open(sys.argv[2], "w"))
END
sed 's/tp = { 2, 4 }/tp = { 2 }/' "$SOURCE/tables/host/spec.lua" >"$WORK/names/spec.lua"
(cd "$WORK/names" && succeeds plot --data-dir . --arch host --kinds best_strategy --format svg)
[ ! -e "$WORK/names/ran" ] || die "a name was run"
python3 - "$WORK/names/viz/NONE/benchmark.tp2.host_best_strategy.svg" <<'END' || die "the name is not there"
import sys, xml.dom.minidom as m
texts = m.parse(sys.argv[1]).getElementsByTagName("text")
words = "".join(node.data for t in texts for s in [t] + list(t.childNodes) for node in s.childNodes
                if node.nodeType == node.TEXT_NODE)
wanted = "A\"quoted\" <b>&amp;</b> {/Bold x}_y `touch ran` $(touch ran) 'z' %s \\n"
assert "".join(wanted.split()) in "".join(words.split()), words  # it may continue on a second line
END

# An unwritable folder, no gnuplot, a full disk.
folder
echo >"$WORK/file"
failed "$WORK/file" plot --data-dir "$WORK/data" --arch sm90 --out "$WORK/file"
no_picture "$WORK/data/viz"
failed 'nowhere/a.png: cannot be written: No such file or directory' plot heatmap "$one" --fusion NONE \
    --out "$WORK/nowhere/a.png"
ends_in_one_line 1 'pictures need gnuplot' env PATH=/nonexistent "$GENTABLES" plot --data-dir "$WORK/data" \
    --arch sm90
no_picture "$WORK/data/viz"
mkdir "$WORK/no_fonts"
printf '%s\n' '<?xml version="1.0"?><!DOCTYPE fontconfig SYSTEM "fonts.dtd">' \
    "<fontconfig><dir>$WORK/no_fonts</dir><cachedir>$WORK/no_fonts</cachedir></fontconfig>" \
    >"$WORK/fonts.conf"
ends_in_one_line 1 'there is no font' env FONTCONFIG_FILE="$WORK/fonts.conf" "$GENTABLES" plot \
    --data-dir "$WORK/data" --arch sm90
no_picture "$WORK/data/viz"

# Wrong use.
rejects 'needs --data-dir DIR, or KIND FILE' plot
rejects 'no benchmark.tp.N..[{]arch[}].csv' plot --data-dir "$WORK/names/viz"
rejects 'no such folder' plot --data-dir "$WORK/none" --arch sm90
rejects 'has no benchmark.tp.N..sm80.csv' plot --data-dir "$WORK/data" --arch sm80
rejects 'no picture "heatmpa" \(did you mean heatmap\?\)' plot heatmpa "$one"
rejects 'no rows of fusion none \(did you mean NONE\?\); it has NONE' plot heatmap "$one" --fusion none \
    --out "$WORK/a.png"
rejects 'no picture "pie"; valid pictures: heatmap' plot pie "$one" --fusion NONE --out "$WORK/a.png"
rejects '--kinds: "pie" is not one of all, heatmap' \
    plot --data-dir "$WORK/data" --arch sm90 --kinds heatmap,pie
rejects 'needs a FILE' plot heatmap --fusion NONE --out "$WORK/a.png"
rejects 'needs --fusion F and --out PATH' plot heatmap "$one" --out "$WORK/a.png"
rejects 'ends in neither .png nor .svg' plot heatmap "$one" --fusion NONE --out "$WORK/a.pdf"
rejects '--formats: "pdf" is not one of png, svg' plot --data-dir "$WORK/data" --arch sm90 --format pdf
rejects 'no such dtype; valid: bfloat16' plot --data-dir "$WORK/data" --arch sm90 --dtype int8
rejects 'no row of float32 allreduce' plot --data-dir "$WORK/data" --arch sm90 --dtype fp32
rejects 'No such file' plot heatmap "$WORK/none.csv" --fusion NONE --out "$WORK/a.png"
no_picture "$WORK/data/viz"
