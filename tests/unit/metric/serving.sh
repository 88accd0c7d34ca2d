#!/bin/sh
# Serving metrics of runs that this test makes: one number over the files, a table over runs, JSON; and the
# documented results for invalid input.
# Needs: yaml
. "$SOURCE/tests/unit/metric/lib.sh"

# run_folder NAME PHASE: a run without results.
run_folder() {
    mkdir -p "$WORK/$1/results_json"
    printf 'workload:\n  model:\n    phase: %s\n' "$2" >"$WORK/$1/card.yaml"
}

# result RUN FILE TTFT THROUGHPUT: a result file; its arrays are skipped.
result() {
    cat >"$WORK/$1/results_json/$2" <<END
{"date": "20250101", "completed": 3, "ttfts": [0.1, 0.2], "itls": [[0.1], []], "errors": ["", "a \"quote\""],
 "mean_ttft_ms": $3, "p99_ttft_ms": 9, "median_itl_ms": 2.5e-3, "output_throughput": $4}
END
}

# prints NAME RUN TEXT
prints() {
    succeeds metric "$1" --trace "$WORK/$2"
    [ "$(cat "$stdout")" = "$3" ] || die "$1 of $2 is not $3"
    [ ! -s "$stderr" ] || die "something on stderr"
}

run_folder 'a[baseline_32_8192]' inference
result 'a[baseline_32_8192]' b.json 4000.5 0.1
result 'a[baseline_32_8192]' a.json 4518.32 0.2
printf 'not read' >"$WORK/a[baseline_32_8192]/results_json/notes.txt"
prints TTFT 'a[baseline_32_8192]' 4259.41
prints TTFT 'a[baseline_32_8192]/' 4259.41
prints p99_TTFT 'a[baseline_32_8192]' 9.0
prints median_ITL 'a[baseline_32_8192]' 0.0025
# 0.1 + 0.2 is 0.30000000000000004 in doubles, and half of that 0.15000000000000002.
prints output_throughput 'a[baseline_32_8192]' 0.15000000000000002

succeeds metric TTFT --trace "$WORK/a[baseline_32_8192]" --json
python3 - "$stdout" <<'END' || die "the JSON is not what two values give"
import json, math, statistics, sys
run, values = json.load(open(sys.argv[1])), [4518.32, 4000.5]
assert run["count"] == 2 and run["unit"] == "ms" and run["metric"] == "TTFT", run
assert run["mean"] == statistics.mean(values) and run["median"] == statistics.median(values), run
assert math.isclose(run["standard_deviation"], statistics.stdev(values)), run
assert (run["min"], run["max"]) == (min(values), max(values)), run
assert [path.rsplit("/", 1)[1] for path in run["files"]] == ["a.json", "b.json"], run
END

run_folder b inference
mv "$WORK/b/card.yaml" "$WORK/b/card.yml"
result b x.json 7 1
succeeds metric TTFT --trace "$WORK/b" --trace "$WORK/a[baseline_32_8192]"
[ "$(sed -n 2p "$stdout")" = "    7.0      1  $WORK/b" ] || die "no row of the table for b"
[ "$(sed -n 3p "$stdout")" = "4259.41      2  $WORK/a[baseline_32_8192]" ] || die "no row of the table for a"

# Runs as arguments are those of --trace.
cp "$stdout" "$WORK/by_option"
succeeds metric TTFT "$WORK/b" "$WORK/a[baseline_32_8192]"
cmp "$stdout" "$WORK/by_option" || die "another table for runs as arguments"
rejects '/b is taken as --trace, which is given, too' metric TTFT "$WORK/b" --trace "$WORK/b"
rejects 'communicationOverhead takes 2 files, not 1' metric communicationOverhead one.csv
rejects 'metric plot takes NAME, DIR and OUT, not also more' metric plot TTFT a b more

# No number of these is below 0.
run_folder negative inference
result negative x.json -5 1
failed 'x.json: mean_ttft_ms is -5; a number of at least 0 is required' metric TTFT --trace "$WORK/negative"

# Wrong use and wrong input, as documented.
ends_with 1 "$GENTABLES" metric speed --trace "$WORK/b"
[ "$(sed -n 1p "$stderr")" = "Error: Unknown metric: speed" ] || die "not the documented line"
sed -n 2p "$stderr" | grep -q 'TTFT, .*output_throughput' || die "the message lacks the valid metrics"
ends_with 1 "$GENTABLES" metric ttft
has '^gentables: ttft is not a metric \(did you mean TTFT\?\); ' "$stderr"
ends_with 1 "$GENTABLES" metric TPOT
refused "Error: --trace argument required for metric: TPOT" "--trace"
ends_with 1 "$GENTABLES" metric TTFT --trace "$WORK/nowhere"
refused "Error: Trace directory not found: $WORK/nowhere" "does not exist"
mkdir -p "$WORK/bare"
ends_with 1 "$GENTABLES" metric TTFT --trace "$WORK/bare"
refused "Error: No workload YAML file found in trace directory" "$WORK/bare"
for text in '- a list' 'a: [' 'a word' '' '*unknown'; do
    printf '%s\n' "$text" >"$WORK/bare/card.yaml"
    ends_with 1 "$GENTABLES" metric TTFT --trace "$WORK/bare"
    refused "Error: Invalid workload YAML format" "card.yaml"
done
run_folder bare training
for pair in TTFT:TTFT TPOT:TPOT "request_throughput:Request throughput" \
    "output_throughput:Output throughput"; do
    ends_with 1 "$GENTABLES" metric "${pair%:*}" --trace "$WORK/bare"
    refused "Error: ${pair#*:} metric requires inference phase, found: training" "card.yaml"
done
run_folder bare inference
cp "$WORK/bare/card.yaml" "$WORK/bare/other.yml"
failed 'card.yaml, other.yml' metric TTFT --trace "$WORK/bare"
rm -r "$WORK/bare/other.yml" "$WORK/bare/results_json"
ends_with 1 "$GENTABLES" metric TTFT --trace "$WORK/bare"
refused "Error: results_json directory not found" "$WORK/bare/results_json"
mkdir "$WORK/bare/results_json"
failed 'has no .*json' metric TTFT --trace "$WORK/bare"

# One unusable file among many: it is named, and the rest gives no number.
for value in null '"4000.5"' '[1]' 1e999; do
    result b y.json "$value" 1
    failed 'b/results_json/y.json' metric TTFT --trace "$WORK/b"
    [ ! -s "$stdout" ] || die "a number from the rest"
done
printf '{"mean_ttft_ms": 1' >"$WORK/b/results_json/y.json"
failed 'b/results_json/y.json' metric TTFT --trace "$WORK/b"
printf '[1]' >"$WORK/b/results_json/y.json"
failed 'b/results_json/y.json' metric TTFT --trace "$WORK/b"
rm "$WORK/b/results_json/y.json" && mkdir "$WORK/b/results_json/y.json"
failed 'b/results_json/y.json' metric TTFT --trace "$WORK/b"
rmdir "$WORK/b/results_json/y.json"

# A key that only some files have: its mean over those, with a message. A key that no file has is not 0.
printf '{"completed": 1}' >"$WORK/b/results_json/z.json"
succeeds metric TTFT --trace "$WORK/b"
[ "$(cat "$stdout")" = 7.0 ] || die "not the TTFT of the only file with one"
one_line '1 of 2 files have no mean_ttft_ms'
failed 'none of its 2 files has mean_tpot_ms' metric TPOT --trace "$WORK/b"
