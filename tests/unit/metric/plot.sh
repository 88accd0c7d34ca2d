#!/bin/sh
# metric plot: runs become lines and points of the picture, by folder name or by workload card; skipped runs
# are reported, and no data, or an unreadable run, is an error without a picture.
# Needs: yaml
. "$SOURCE/tests/unit/metric/lib.sh"
needs gnuplot

# card TRACES/NAME MORE: makes the run's folder and its card; MORE follows workload.model.phase.
card() {
    mkdir -p "$WORK/$1/results_json"
    printf 'workload:\n  model:\n    phase: inference\n%s' "${2:-}" >"$WORK/$1/card.yaml"
}

# run TRACES/NAME VALUE...: a result file for each value; request_throughput is a tenth of a thousandth.
run() {
    folder=$1
    [ -d "$WORK/$folder" ] || card "$folder"
    shift
    for value in "$@"; do
        printf '{"mean_ttft_ms": %s, "mean_tpot_ms": 1%s, "mean_itl_ms": 2%s, "request_throughput": %se-4,
            "output_throughput": 3%s}\n' "$value" "$value" "$value" "$value" "$value" \
            >"$WORK/$folder/results_json/$value.json"
    done
}

# settings SEQS TOKENS [MODE [FRAMEWORK]]: the rest of a card.
settings() {
    printf '  data:\n    max-num-seqs: %s\n    max-num-batched-tokens: %s\n' "$1" "$2"
    [ -z "${3:-}${4:-}" ] || echo 'Model-executor:'
    [ -z "${4:-}" ] || printf '  framework:\n    name: %s\n' "$4"
    [ -z "${3:-}" ] || printf '  expert_parallel:\n    mode: %s\n' "$3"
    echo
}

# points TEXT: the points of the JSON on stdout, as panel:label:x:value in words.
points() {
    got=$(python3 - "$stdout" <<'END'
import json, sys
printed = json.load(open(sys.argv[1]))
print(" ".join(f"{panel}:{series['label']}:{point[setting]}:{point['value']:g}"
    for panel, setting, part in zip("LR", ("max-num-seqs", "max-num-batched-tokens"), printed["panels"])
    for series in part["series"] for point in series["points"]))
END
    )
    [ "$got" = "$1" ] || die "the points are $got"
}

no_picture() {
    [ -z "$(find "$WORK/out" -type f 2>/dev/null)" ] || die "there is a picture, or what is left of one"
}

baseline() { echo "Mixtral8x7B-vllmTP4-Perlmutter[baseline_$1_$2]-group12"; }
all2all() { echo "Mixtral8x7B-vllmEP4-Perlmutter[defaultall2all_$1_$2]-group12"; }

# The documented names, panels and filters.
run "named/$(baseline 8 8192)" 900 1100
run "named/$(baseline 16 8192)" 2000
run "named/$(baseline 64 8192)" 4000
run "named/$(all2all 32 8192)" 3000
run "named/$(all2all 32 2048)" 2500
run "named/$(all2all 64 16384)" 7
for balancer in on off; do
    run "named/Mixtral8x7B-vllmEP4-Perlmutter[defaultall2all_8_8192_eplb$balancer]-group12" 1
done
mkdir "$WORK/named/another-group4"
echo 'no run' >"$WORK/named/notes.txt"
succeeds metric plot TTFT --traces "$WORK/named/" --out "$WORK/out"
[ "$(cat "$stdout")" = "$WORK/out/ttft_vs_config.png: 5 runs of 2 implementations" ] ||
    die "stdout lacks the picture or its runs"
has 'left out, load balancer on or off: .*_eplboff.*, .*_eplbon' "$stderr"
grep -q 'left out, not a serving run: another-group4$' "$stderr" || die "another-group4"
grep -q 'left out, at settings of no panel: .*_64_16384\]-group12$' "$stderr" || die "64_16384"
[ "$(wc -l <"$stderr")" = 3 ] || die "more on stderr"
succeeds metric plot TTFT --traces "$WORK/named" --out "$WORK/out" --json
points "L:Baseline:8:1000 L:Baseline:16:2000 L:Baseline:64:4000 L:DefaultAll2All:32:3000 \
R:DefaultAll2All:2048:2500 R:DefaultAll2All:8192:3000"
for pair in TPOT:tpot request_throughput:request_throughput output_throughput:throughput ITL:itl; do
    succeeds metric plot "${pair%:*}" --traces "$WORK/named" --out "$WORK/out"
    [ -s "$WORK/out/${pair#*:}_vs_config.png" ] || die "no picture of $pair"
done
[ "$(find "$WORK/out" -type f | wc -l)" = 5 ] || die "something else in the folder of pictures"

# The picture itself, read back by gnuplot: every third pixel. Left, the markers of Baseline at 8, 16 and 64
# are 1 and 2 apart in log2, and so are their values 1000, 2000 and 4000; right there are none, and the
# markers of DefaultAll2All at 2048 and 8192 are not one above the other.
cat >"$WORK/pixels.gp" <<END
set table "$WORK/pixels"
plot "$WORK/out/ttft_vs_config.png" binary filetype=png using 1:2:3 every 3:3 with rgbimage
END
gnuplot -d "$WORK/pixels.gp" >"$stdout" 2>&1 || die "gnuplot cannot read the picture"
python3 - "$WORK/pixels" >"$stdout" 2>&1 <<'END' || die "the picture does not show the values"
import sys
BASELINE, ALL2ALL, WIDTH, LEGEND = ("0", "114", "178"), ("213", "94", "0"), 3600, 306
MARKER = 6  # sampled pixels: lines are thinner

def markers(colour, begin, end):
    columns = {}
    for x, y in pixels.get(colour, []):
        if begin <= x < end and y > LEGEND:
            columns.setdefault(x, []).append(y)
    groups = []
    for x in sorted(columns):
        if len(columns[x]) < MARKER:
            continue
        if not groups or x - groups[-1][-1][0] > 9:
            groups.append([])
        groups[-1] += [(x, y) for y in columns[x]]
    return [tuple(sum(part) / len(group) for part in zip(*group)) for group in groups]

pixels = {}
for line in open(sys.argv[1]):
    words = line.split()
    if len(words) > 5 and words[0] != "#":
        pixels.setdefault(tuple(words[2:5]), []).append((float(words[0]), float(words[1])))
left, right = markers(BASELINE, 0, WIDTH / 2), markers(BASELINE, WIDTH / 2, WIDTH)
print(left, right)
assert len(left) == 3 and not right
(x1, y1), (x2, y2), (x3, y3) = left
assert abs((x3 - x2) / (x2 - x1) - 2) < 0.05 and abs((y3 - y2) / (y2 - y1) - 2) < 0.05
left, right = markers(ALL2ALL, 0, WIDTH / 2), markers(ALL2ALL, WIDTH / 2, WIDTH)
print(left, right)
assert len(left) == 1 and len(right) == 2
assert abs(right[1][1] - left[0][1]) < 5 and right[1][0] > right[0][0] and right[1][1] > right[0][1]
END

# By workload card, beside names; any implementations. Each skipped run has its reason.
run "cards/$(all2all 32 2048)" 11
carded() { # NAME SEQS TOKENS MODE FRAMEWORK VALUE
    card "cards/$1" "$(settings "$2" "$3" "$4" "$5")"
    run "cards/$1" "$6"
}
carded a 32 2048 '' vllm 10
carded b 32 '"8192"' '' vllm 12
carded c 32 8192 default_all_to_all vllm 9
carded d 64 8192 deep_ep vllm 8
card cards/e "$(settings many 8192)"
card cards/f
succeeds metric plot TTFT --traces "$WORK/cards" --out "$WORK/out" --json
has 'left out, workload.data.max-num-seqs of its card is no count: e$' "$stderr"
has 'left out, workload.data.max-num-seqs of its card is missing: f$' "$stderr"
points "L:Baseline:32:12 L:DefaultAll2All:32:9 L:deep_ep:64:8 \
R:Baseline:2048:10 R:Baseline:8192:12 R:DefaultAll2All:2048:11 R:DefaultAll2All:8192:9"
# Runs with cards that differ in other settings make no line.
carded g 32 8192 '' sglang 13
succeeds metric plot TTFT --traces "$WORK/cards" --out "$WORK/out" --json
points "L:DefaultAll2All:32:9 L:Baseline (sglang):32:13 L:Baseline (vllm):32:12 L:deep_ep:64:8 \
R:DefaultAll2All:2048:11 R:DefaultAll2All:8192:9 R:Baseline (sglang):8192:13 R:Baseline (vllm):2048:10 \
R:Baseline (vllm):8192:12"

# Names may contain any characters.
invalid=$(printf 'x\377')
for name in '`touch ran`' '{:Bold a}_b^c' "q\"uo'te" '@x %s \n \140' 'naïve' "$invalid"; do
    run "signs/M[${name}_32_8192]" 5
done
(cd "$WORK" && succeeds metric plot TTFT --traces signs --out out)
[ ! -e "$WORK/ran" ] || die "a name was run"
grep -q '6 runs of 6 implementations' "$stdout" || die "not every name is a line"

# No data, in each way: no picture.
rm -r "$WORK/out"
mkdir "$WORK/empty"
failed 'empty: no folder of a serving run in it' metric plot TTFT --traces "$WORK/empty" --out "$WORK/out"
run "elsewhere/$(baseline 16 4096)" 5
failed 'none of its 1 runs has max-num-batched-tokens 8192 or max-num-seqs 32; they have 16/4096' metric \
    plot TTFT --traces "$WORK/elsewhere" --out "$WORK/out"
ends_with 1 "$GENTABLES" metric plot TTFT --traces "$WORK/nowhere" --out "$WORK/out"
refused "Error: Trace directory not found: $WORK/nowhere" "does not exist"
no_picture

# Wrong use.
(cd "$WORK" && ends_with 1 "$GENTABLES" metric plot TTFT --out "$WORK/out")
has '^Error: Trace directory not found: trace_collection$' "$stderr"
ends_with 1 "$GENTABLES" metric plot speed --traces "$WORK/named" --out "$WORK/out"
no_picture

# A run that cannot be read is named; no picture is made of the others.
run "broken/$(baseline 8 8192)" 5
run "broken/$(baseline 32 8192)" 5
echo '{"mean_ttft_ms": ' >"$WORK/broken/$(baseline 32 8192)/results_json/b.json"
failed 'baseline_32_8192\]-group12/results_json/b.json' metric plot TTFT --traces "$WORK/broken" \
    --out "$WORK/out"
rm "$WORK/broken/$(baseline 32 8192)/card.yaml"
ends_with 1 "$GENTABLES" metric plot TTFT --traces "$WORK/broken" --out "$WORK/out"
refused "Error: No workload YAML file found in trace directory" 'baseline_32_8192'
rm -r "$WORK/broken/$(baseline 32 8192)"
ln -s nowhere "$WORK/broken/$(baseline 32 8192)"
failed 'baseline_32_8192\]-group12: cannot be read' metric plot TTFT --traces "$WORK/broken" --out "$WORK/out"
no_picture

# Two runs for one point.
run "twice/$(baseline 32 8192)" 5
card twice/again "$(settings 32 8192)"
run twice/again 6
failed 'Mixtral.* and .*/again: both are Baseline at max-num-seqs 32 and max-num-batched-tokens 8192' metric \
    plot TTFT --traces "$WORK/twice" --out "$WORK/out"
no_picture

# If the picture cannot be made.
ends_with 1 env PATH=/nonexistent "$GENTABLES" metric plot TTFT --traces "$WORK/named" --out "$WORK/out"
grep -q 'out/ttft_vs_config.png: gnuplot: .*gnuplot-nox' "$stderr" || die "no line about gnuplot"
no_picture
ends_with 1 "$GENTABLES" metric plot TTFT --traces "$WORK/named" --out "$WORK/named/notes.txt"
grep -q 'notes.txt: is not a folder' "$stderr" || die "no line about the folder"
