#!/bin/sh
# Results of serving benchmarks without a workload card: vLLM's JSON, SGLang's lines of JSON, and folders of
# them; --metric in place of NAME; the default folders of metric plot.
# Needs: yaml
. "$SOURCE/tests/unit/metric/lib.sh"
cd "$WORK"

prints() { # TEXT ARGUMENT...
    text=$1
    shift
    succeeds metric "$@"
    [ "$(cat "$stdout")" = "$text" ] || die "not $text: metric $*"
}

# vLLM writes an object; SGLang adds a line for each run to one file.
mkdir results
cat >results/vllm.json <<'END'
{"date": "20250101-120000", "backend": "vllm", "model_id": "m", "num_prompts": 200, "completed": 200,
 "request_throughput": 4.5, "output_throughput": 900.5, "mean_ttft_ms": 100.0, "mean_tpot_ms": 20.0,
 "mean_itl_ms": 19.5, "itls": [[0.1, 0.2]]}
END
cat >sglang.jsonl <<'END'
{"backend": "sglang", "request_rate": Infinity, "request_throughput": 2.0, "mean_ttft_ms": 40.5}
{"request_rate": -Infinity, "request_throughput": 4.0, "mean_ttft_ms": 50.5, "mean_itl_ms": NaN}
END
prints 100.0 TTFT --trace results/vllm.json
prints 100.0 TTFT --trace results
prints 19.5 ITL --trace results/
prints 45.5 --trace sglang.jsonl --metric TTFT
prints 3.0 --metric request_throughput --trace sglang.jsonl
cp sglang.jsonl results
succeeds metric TTFT --trace results --json
has '"count": 3' "$stdout"

# Invalid input names the file, and the line.
failed 'sglang.jsonl:2: mean_itl_ms is null or not finite' metric ITL --trace sglang.jsonl
echo '{"mean_ttft_ms": "fast"}' >>sglang.jsonl
failed 'sglang.jsonl:3: mean_ttft_ms is of type string' metric TTFT --trace sglang.jsonl
printf '{"completed": 1}\n{"completed"\n' >cut.jsonl
failed 'cut.jsonl:[0-9]: not a result file|cut.jsonl: not a result file' metric TTFT --trace cut.jsonl
failed 'results: none of its 2 files has p99_itl_ms' metric p99_ITL --trace results
rejects 'NAME and --metric are the same' metric TTFT --metric TTFT --trace results
ends_with 1 "$GENTABLES" metric --metric speed --trace results
has '^Error: Unknown metric: speed' "$stderr"

# A run's folder without its card: the documented line, and all that a card needs.
mkdir -p run/results_json
cp results/vllm.json run/results_json
ends_with 1 "$GENTABLES" metric TTFT --trace run
refused "Error: No workload YAML file found in trace directory" "workload: { model: { phase: inference } }"
prints 100.0 TTFT --trace run/results_json

# metric plot: trace_collection and graphs, as arguments and by default.
command -v gnuplot >/dev/null || skip "no gnuplot"
failed_here() { ends_with 1 "$GENTABLES" metric plot TTFT && has 'trace_collection' "$stderr"; }
failed_here
run='trace_collection/Mixtral8x7B-vllmTP4-Perlmutter[baseline_32_8192]-group12'
mkdir -p "$run/results_json"
cp results/vllm.json "$run/results_json"
printf 'workload:\n  model:\n    phase: inference\n' >"$run/card.yaml"
succeeds metric plot TTFT
[ -s graphs/ttft_vs_config.png ] || die "no picture in graphs"
succeeds metric plot --metric TPOT trace_collection/ pictures/
[ -s pictures/tpot_vs_config.png ] || die "no picture in pictures"
rejects 'pictures and --out are the same' metric plot TTFT trace_collection pictures --out other
