#!/bin/sh
# best_strategy.svg, which report.md shows, is table.csv as a picture: every box is the winner of its cells,
# those uncertain and those not measured are marked, and the same rows give the same bytes.
. "$SOURCE/tests/lib.sh"

python3 "$SOURCE/tests/perf/make_rows.py" "$WORK/rows" small
sed '/,ONESHOT,RESIDUAL_RMS_NORM,/d; /,16384,8192,/d' "$WORK/rows/benchmark.tp2.sm90.csv" >"$WORK/fewer"
mv "$WORK/fewer" "$WORK/rows/benchmark.tp2.sm90.csv"
for out in one other; do
    succeeds generate --data-dir "$WORK/rows" --arch sm90 --out "$WORK/$out"
done
cmp "$WORK/one/best_strategy.svg" "$WORK/other/best_strategy.svg" || die "the same rows give other bytes"
grep -q '^!\[.*\](best_strategy.svg)$' "$WORK/one/report.md" || die "report.md does not show it"

python3 - "$WORK/one" >"$stdout" 2>"$stderr" <<'END' || die "the picture is not the table"
import collections, csv, sys
import xml.etree.ElementTree as xml

svg = "{http://www.w3.org/2000/svg}"
wanted = collections.defaultdict(dict)
uncertain = collections.Counter()
for line in csv.DictReader(open(sys.argv[1] + "/table.csv")):
    panel = f"TP {line['world_size']}, {line['fusion']}"
    wanted[panel][int(line["hidden_size"]), int(line["num_tokens"])] = line["strategy"]
    uncertain[panel] += line["margin"] != "" and float(line["margin"]) < 0.05 and line["confidence"] == ""

seen = set()
for group in xml.parse(sys.argv[1] + "/best_strategy.svg").iter(svg + "g"):
    panel = group.find(svg + "text").text
    hidden_sizes, tokens = (sorted({key[i] for key in wanted[panel]}) for i in (0, 1))
    rows = collections.defaultdict(list)
    for box in group.iter(svg + "rect"):
        if "class" in box.attrib:
            rows[int(box.get("y"))].append((int(box.get("x")), int(box.get("width")), box.get("class")))
    assert len(rows) == len(hidden_sizes), panel
    for y, hidden_size in zip(sorted(rows, reverse=True), hidden_sizes):  # the largest on top
        boxes = sorted(rows[y])
        cell = sum(box[1] for box in boxes) // len(tokens)
        got = [name for _, width, name in boxes for _ in range(width // cell)]
        assert got == [wanted[panel][hidden_size, t] for t in tokens], (panel, hidden_size, got)
    marks = sum("uncertain" == path.get("class") for path in group.iter(svg + "path"))
    assert marks == uncertain[panel], (panel, marks, uncertain[panel])
    seen.add(panel)
assert seen == set(wanted) and len(seen) == 12, seen
assert "unmeasured" in wanted["TP 2, NONE"].values()
END

# Unmeasured cells have a dot, and TP sizes of more ranks than cores a star, as in report.md.
succeeds generate --data-dir "$SOURCE/tests/unit/report/derived" --arch host --out "$WORK/derived"
python3 - "$WORK/derived" >"$stdout" 2>"$stderr" <<'END' || die "what was not measured is not marked"
import collections, csv, re, sys
import xml.etree.ElementTree as xml

svg = "{http://www.w3.org/2000/svg}"
report = open(sys.argv[1] + "/report.md").read()
stars = {size: "*" * (ranks == "oversubscribed") for size, ranks in
         re.findall(r"^\| (\d+) \| bfloat16 \|.* \| *(\w*) *\|$", report, re.M)}
assert sorted(stars.values()) == ["", "*"], stars
wanted = collections.Counter()
for line in csv.DictReader(open(sys.argv[1] + "/table.csv")):
    size = line["world_size"]
    wanted[f"TP {size}{stars[size]}, {line['fusion']}"] += line["basis"] == "derived"
picture = xml.parse(sys.argv[1] + "/best_strategy.svg")
got = {}
for group in picture.iter(svg + "g"):
    got[group.find(svg + "text").text] = len(group.findall(svg + "circle"))
assert got == wanted and sum(got.values()) > 0, (got, wanted)
dot, star = [text.text for text in picture.iter(svg + "text")][-2:]
assert dot == "A white dot: interpolated.", dot
assert star == "*: more ranks than cores.", star
END
if grep -v '^<!--' "$WORK/one/best_strategy.svg" | grep -q 'interpolated\|ranks than cores'; then
    die "a note explains a sign that the picture lacks"
fi

# A grid that is too large to distinguish its lines is reported, and not drawn.
rows "$WORK/many/benchmark.tp2.sm90.csv" '2,bfloat16,2048,1,1024,NCCL,NONE,allreduce,9.5'
i=2
while [ $i -le 60 ]; do
    echo "2,bfloat16,$((i * 2048)),$i,1024,NCCL,NONE,allreduce,9.5"
    i=$((i + 1))
done >>"$WORK/many/benchmark.tp2.sm90.csv"
succeeds generate --data-dir "$WORK/many" --arch sm90
grep -q '60 token counts x 1 hidden sizes are too many' "$WORK/many/best_strategy.svg" || die "not printed"

# Long titles, of several nodes, end within the picture and before the next one.
header=$header,mode,nodes,ranks_per_node
# shellcheck disable=SC2046
rows "$WORK/nodes/benchmark.tp4.nodes2.host.csv" $(for fusion in '' _QUANT_FP8 _QUANT_NVFP4; do
    echo "4,bfloat16,2048,1,1024,MPI,RESIDUAL_RMS_NORM$fusion,allreduce,9.5,eager,2,2"
done)
succeeds generate --data-dir "$WORK/nodes" --arch host --formats picture --out "$WORK/nodes"
python3 - "$WORK/nodes/best_strategy.svg" >"$stdout" 2>"$stderr" <<'END' || die "a title is too long"
import sys
import xml.etree.ElementTree as xml

svg = "{http://www.w3.org/2000/svg}"
picture = xml.parse(sys.argv[1]).getroot()
titles = [group.find(svg + "text") for group in picture.iter(svg + "g")]
starts = [int(title.get("x")) for title in titles] + [int(picture.get("width"))]
assert len(titles) == 3 and "TP 4 on 2 nodes, RESIDUAL_RMS_NORM_QUANT_NVFP4" == titles[2].text
for title, start, following in zip(titles, starts, starts[1:]):
    assert start + 6.2 * len(title.text) < following, (title.text, start, following)
END
