#!/bin/sh
# Everything that is to be proven on a GPU, in one call of under eight minutes, with sh and the bench alone:
#
#   sh verify.sh FOLDER [OUT]   gentables-bench-cuda is in FOLDER; rows and logs go to OUT, or FOLDER/verified
#
# Every strategy and epilogue on this GPU, verified on every call; the same under compute-sanitizer, where
# that is there, on small sizes; then a sweep in loopback at TP 2, 4 and 8, whose rows are written as they
# come (rows.tpN.txt, in the words of bench/protocol.h); a short table last. Where there are several GPUs,
# also with a GPU for each rank. `gentables` makes tables of it elsewhere. 77: there is no GPU.
set -u
folder=${1:?usage: sh verify.sh FOLDER-OF-gentables-bench-cuda [OUT]}
bench=$folder/gentables-bench-cuda
out=${2:-$folder/verified}
ends=$(($(date +%s) + ${GENTABLES_VERIFY_SECONDS:-450}))
failed=0
mkdir -p "$out"

# Seconds that are left, of at most $1.
left() {
    now=$(date +%s)
    seconds=$((ends - now))
    if [ "$seconds" -gt "$1" ]; then seconds=$1; fi
    if [ "$seconds" -lt 1 ]; then seconds=1; fi
    echo "$seconds"
}

# run NAME SECONDS COMMAND...: says how it went; its output is in a log.
run() {
    name=$1 most=$2
    shift 2
    if [ "$(date +%s)" -ge "$ends" ]; then
        echo "not run, for time is over: $name"
        failed=1
        return
    fi
    if timeout -k 5 "$(left "$most")" "$@" >"$out/$name.txt" 2>"$out/$name.err"; then
        echo "ok      $name"
    else
        echo "FAILED  $name: exit code $?: $(tail -n 1 "$out/$name.err")"
        failed=1
    fi
}

if ! "$bench" --version >"$out/version.txt" 2>&1 && [ -d "$folder/source" ]; then
    sh "$folder/rebuild.sh" "$folder" >"$out/rebuild.txt" 2>&1 || tail -n 3 "$out/rebuild.txt"
fi
if ! "$bench" --version >"$out/version.txt" 2>&1; then
    echo "gentables-bench-cuda does not start: $(cat "$out/version.txt")"
    exit 1
fi
cat "$out/version.txt"
if grep -q " isa=none " "$out/version.txt"; then
    "$bench" --ranks 1 -b 256 -e 256 2>&1 | head -n 1
    exit 77
fi
gpus=$(sed 's/.* on \([0-9]*\) x .*/\1/' "$out/version.txt")

# ---- verify all ----------------------------------------------------------------------------------

fusions="NONE RESIDUAL_RMS_NORM RESIDUAL_RMS_NORM_QUANT_FP8 RESIDUAL_RMS_NORM_QUANT_NVFP4"
quick="--samples 3 --budget 0.05 --emulate-nvfp4 --workspace 16M"
for tp in 2 4 8; do
    for dtype in bfloat16 float16 float32; do
        for fusion in $fusions; do
            # shellcheck disable=SC2086
            run "verify-tp$tp-$dtype-$fusion" 20 "$bench" --ranks "$tp" --loopback --dtype "$dtype" \
                --fusion "$fusion" --hidden-size 2880 -b 64K -e 4M -f 8 $quick
        done
    done
done
wide="--hidden-size 7168 -b 16K -e 1M $quick"
# shellcheck disable=SC2086
{
    run verify-streams 20 "$bench" --ranks 4 --streams --fusion RESIDUAL_RMS_NORM $wide
    run verify-graph 20 "$bench" --ranks 2 --loopback --mode graph \
        --fusion RESIDUAL_RMS_NORM_QUANT_FP8 $wide
    run verify-cold 20 "$bench" --ranks 2 --loopback --mode cold $wide
    run verify-nccl-one-rank 30 "$bench" --ranks 1 --fusion RESIDUAL_RMS_NORM $wide
    if [ "$gpus" -gt 1 ]; then
        run verify-gpu-each 60 "$bench" --ranks "$gpus" --fusion RESIDUAL_RMS_NORM $wide
    fi
}

# ---- compute-sanitizer ---------------------------------------------------------------------------

if command -v compute-sanitizer >/dev/null; then
    for tool in memcheck racecheck synccheck initcheck; do
        run "sanitize-$tool" 30 compute-sanitizer --tool "$tool" --error-exitcode 1 "$bench" --ranks 2 \
            --loopback --strategies ONESHOT,TWOSHOT --fusion RESIDUAL_RMS_NORM --hidden-size 256 \
            -b 2K -e 2K --samples 2 --budget 0.01 --workspace 1M
    done
else
    echo "not run, for it is not here: compute-sanitizer"
fi

# ---- a sweep in loopback -------------------------------------------------------------------------

# requests MODE: 7168 wide, bf16, from one token to 64 MiB.
requests() {
    id=0
    for fusion in $fusions; do
        for tokens in 1 2 4 8 16 64 256 1024 4681; do
            id=$((id + 1))
            echo "measure id=$id op=allreduce dtype=bfloat16 fusion=$fusion hidden_size=7168" \
                "num_tokens=$tokens mode=$1 min_samples=10 max_samples=100 budget_us=300000" \
                "precision=0.01 seed=$id"
        done
    done
    echo quit
}
requests graph >"$out/requests.txt"
for tp in 2 4 8; do
    # shellcheck disable=SC2016 # for the inner shell
    run "rows.tp$tp" 90 sh -c 'exec "$1" --serve --ranks "$2" --loopback --emulate-nvfp4 <"$3"' \
        sh "$bench" "$tp" "$out/requests.txt"
done

# ---- a short table -------------------------------------------------------------------------------

echo
echo "loopback, bf16 x 7168, graph, us (floor): the fastest of each"
for tp in 2 4 8; do
    awk -v tp="$tp" '
        function value(name) {
            if (!match($0, " " name "=[^ ]*")) return ""
            return substr($0, RSTART + length(name) + 2, RLENGTH - length(name) - 2)
        }
        $1 == "measure" { shape[value("id")] = value("fusion") " " value("num_tokens") }
        $1 == "row" {
            id = value("id")
            time = value("time_us") + 0
            if (id in best && time >= best[id]) next
            best[id] = time
            who[id] = value("strategy")
            floor[id] = value("floor_us")
        }
        $1 == "none" { reasons[substr($0, index($0, "reason=") + 7)]++ }
        END {
            for (i = 1; i in shape; i++) {
                if (!(i in best)) continue
                printf "TP %d  %-44s %9.2f (%.2f)  %s\n", tp, shape[i], best[i], floor[i], who[i]
            }
            for (reason in reasons) printf "TP %d  no time for %d: %s\n", tp, reasons[reason], reason
        }' "$out/requests.txt" "$out/rows.tp$tp.txt"
done
if [ "$failed" = 0 ]; then echo "verified"; else echo "something failed; see $out"; fi
exit "$failed"
