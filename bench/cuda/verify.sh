#!/bin/sh
# Everything that is to be proven on a GPU, in one call of under eight minutes, with sh and the bench alone:
#
#   sh verify.sh FOLDER [OUT]   gentables-bench-cuda is in FOLDER; rows and logs go to OUT, or FOLDER/verified
#
# A sweep in loopback at TP 2, 4 and 8, verified on every call, whose rows are written as they come
# (rows.tpN.txt, what the bench was asked and answered; bench/protocol/protocol.h); every type and epilogue;
# the other modes; then compute-sanitizer, where that is there, on small sizes; a short table, and what rows
# say beside what is aimed at; and last the parts that failed: those that were wrong, had no times, did not
# end in their share of the time, or had none left. No part waits for another one: where a strategy hangs or
# breaks the GPU, the same goes on without it. tables.sh makes tables of the rows elsewhere. 77: there is no
# GPU.
set -u
if [ ! -d "${1:-}" ]; then
    echo "usage: sh verify.sh FOLDER-OF-gentables-bench-cuda [OUT]" >&2
    exit 2
fi
folder=$1
bench=$folder/gentables-bench-cuda
out=${2:-$folder/verified}
# A smaller call, for a try.
ends=$(($(date +%s) + ${GENTABLES_VERIFY_SECONDS:-450}))
sizes=${GENTABLES_VERIFY_TP:-2 4 8}
hidden=${GENTABLES_VERIFY_HIDDEN:-7168}
some_tokens=${GENTABLES_VERIFY_TOKENS:-1 2 4 8 16 64 256 1024}
check_tokens=${GENTABLES_VERIFY_CHECK_TOKENS:-3 70}
most_tokens=${GENTABLES_VERIFY_MOST_TOKENS:-4681} # with the hidden size above 64 MiB of bfloat16
most_rows=${GENTABLES_VERIFY_ROWS:-16} # of what is run by hand
kernels_tokens=${GENTABLES_VERIFY_KERNELS_TOKENS:-1 2 4 8 16} # of one kernel beside several
samples=${GENTABLES_VERIFY_SAMPLES:-10}
workspace=${GENTABLES_VERIFY_WORKSPACE:-64M}
patience=${GENTABLES_VERIFY_PATIENCE:-100} # per cent, of what each part may take
deadline=${GENTABLES_VERIFY_DEADLINE:-10} # seconds, for a kernel
most_starts=8                             # of the bench, for one part
fusions="NONE RESIDUAL_RMS_NORM RESIDUAL_RMS_NORM_QUANT_FP8 RESIDUAL_RMS_NORM_QUANT_NVFP4"
failures= # names of parts
mkdir -p "$out"

# fails NAME WHY
fails() {
    echo "FAILED  $1: $2"
    case "$failures " in *" $1 "*) ;; *) failures="$failures $1" ;; esac
}

# Seconds that are left, of at most $1; 0: none.
left() {
    seconds=$((ends - $(date +%s)))
    if [ "$seconds" -gt "$1" ]; then seconds=$1; fi
    if [ "$seconds" -lt 0 ]; then seconds=0; fi
    echo "$seconds"
}

# has_time NAME: or says that there is none.
has_time() {
    [ "$(left 1)" -gt 0 ] && return 0
    fails "$1" "not run, for time is over"
    return 1
}

# within SECONDS COMMAND...: for at most so long, and not beyond the time that is left.
within() {
    limit=$(left "$1")
    shift
    [ "$limit" -gt 0 ] || limit=1 # of 0 timeout would make no limit
    timeout -k 5 "$limit" "$@"
}

# judge NAME STATUS: says how it went.
judge() {
    case $2 in
    0) echo "ok      $1" ;;
    124 | 137) fails "$1" "its time was over; what it had is there" ;;
    *) fails "$1" "exit code $2: $(tail -n 1 "$out/$1.err")" ;;
    esac
}

# run NAME SECONDS COMMAND...: its output is in a log, how it ended in $status.
run() {
    name=$1 most=$(($2 * patience / 100)) status=1
    shift 2
    has_time "$name" || return
    status=0
    within "$most" "$@" >"$out/$name.txt" 2>"$out/$name.err" || status=$?
    judge "$name" "$status"
}

# tabled NAME SECONDS COMMAND...: prints a table; nothing in it is wrong, and something has a time. One rank
# alone has no other candidate than NCCL.
tabled() {
    run "$@"
    [ "$status" = 0 ] || return
    grep -q "^# Out of bounds values : 0 OK" "$out/$1.txt" || fails "$1" "wrong results, or none: see its log"
    if [ "$1" = one_rank ] && grep -q "no NCCL" "$out/version.txt"; then return; fi
    grep -qE "^ +[0-9]+ +[0-9]+ +[a-z0-9]+ +[a-z]+ +[A-Z0-9_]+ +[0-9.]+ " "$out/$1.txt" ||
        fails "$1" "nothing has a time"
}

# ---- a program that runs here --------------------------------------------------------------------

# Why the bench does not get as far as to be asked, in one line; nothing: it does.
why_not() {
    echo quit | within 60 "$bench" --serve --ranks 2 --loopback --workspace 1M --timeout "$deadline" \
        >"$out/try.txt" 2>"$out/try.err"
    status=$?
    [ "$status" = 0 ] && return
    line=$(head -n 1 "$out/try.err")
    echo "${line:-exit code $status}"
}

# What another build mends: kernels for another GPU, a driver that is too old, a program that does not load.
# Not what goes wrong on the GPU: that takes minutes, and the same goes wrong again.
reason=$(why_not)
case $reason in
"" | *"no CUDA driver"* | *"no GPU"*) ;;
"gentables-bench: kernels were built for"* | *"older than this program"* | *"the CUDA driver has no"* | \
    *"GLIBC"* | *"not found"* | *"cannot execute"* | *"Exec format"* | *"error while loading"* | \
    *"No such file"* | *"ermission denied"*)
    echo "built anew, for: $reason"
    if ! within 240 sh "$folder/rebuild.sh" "$folder" >"$out/rebuild.txt" 2>&1; then
        tail -n 20 "$out/rebuild.txt"
        echo "FAILED: it could not be built; see $out/rebuild.txt"
        exit 1
    fi
    reason=$(why_not)
    ;;
esac
case $reason in
"") ;;
*"no CUDA driver"* | *"no GPU"*)
    echo "skipped: $reason"
    exit 77
    ;;
*)
    fails start "$reason"
    ;;
esac
if within 60 "$bench" --version | grep -q "no NCCL"; then # Python's packages bring one along
    nccl=$(within 20 find / -xdev -name libnccl.so.2 -print -quit 2>/dev/null)
    if [ -n "$nccl" ]; then
        LD_LIBRARY_PATH=$(dirname "$nccl"):${LD_LIBRARY_PATH:-}
        export LD_LIBRARY_PATH
    fi
fi
within 60 "$bench" --version | tee "$out/version.txt"
gpus=$(sed -n 's/.* on \([0-9]*\) x .*/\1/p' "$out/version.txt")
usual=$(within 60 "$bench" --candidates | sed -n 's/^candidate name=\([^ ]*\) .* usual=1 .*/\1/p')

# ---- what is asked -------------------------------------------------------------------------------

# ask DTYPE FUSION HIDDEN TOKENS MODE SAMPLES BUDGET: one request.
id=0
ask() {
    id=$((id + 1))
    echo "measure id=$id op=allreduce dtype=$1 fusion=$2 hidden_size=$3 num_tokens=$4 mode=$5" \
        "min_samples=$6 max_samples=$(($6 * 10)) budget_us=$7 precision=0.01 seed=$id"
}

# Every type and epilogue, of a row that is no power of two: in the token counts that fill no block, and many.
checks() {
    for dtype in bfloat16 float16 float32; do
        for fusion in $fusions; do
            for tokens in $check_tokens; do
                ask $dtype "$fusion" $((hidden * 2 / 5 / 32 * 32)) "$tokens" eager 3 20000
            done
        done
    done
}

# The sweep: from small to large, since what is large takes the host longest to verify.
sweep() {
    for tokens in $some_tokens; do
        for fusion in $fusions; do ask bfloat16 "$fusion" "$hidden" "$tokens" graph "$samples" 200000; done
    done
    for fusion in $fusions; do
        ask bfloat16 "$fusion" "$hidden" "$most_tokens" graph "$((samples / 2))" 200000
    done
}

# One kernel for all, or two, or one for each step.
several=ONESHOT,ONESHOT_EPILOGUE,ONESHOT_UNFUSED
kernels() {
    for tokens in $kernels_tokens; do
        for fusion in RESIDUAL_RMS_NORM RESIDUAL_RMS_NORM_QUANT_FP8; do
            echo "$(ask bfloat16 $fusion "$hidden" "$tokens" graph "$((samples * 2))" 200000)" \
                "strategies=$several"
            id=$((id + 1)) # which ask counts in a shell of its own
        done
    done
}

# unanswered REQUESTS ANSWERS STRATEGIES: the requests that have no answer, for these strategies; without them
# the same ones, but for the first, at which the bench ended.
unanswered() {
    awk -v strategies="$3" '
        FILENAME == ARGV[1] { if ($1 == "done") done[$2] = 1; next }
        $2 in done { next }
        strategies == "" && !dropped { dropped = 1; next }
        strategies != "" { sub(/ strategies=[^ ]*/, ""); $0 = $0 " strategies=" strategies }
        { print }' "$2" "$1"
}

# joined_without NAME NAMES: the others of them, with commas between.
joined_without() {
    culprit=$1
    shift
    joined=
    for one in "$@"; do
        [ "$one" = "$culprit" ] || joined=$joined${joined:+,}$one
    done
    echo "$joined"
}

# serve NAME SECONDS TP REQUESTS OPTION...: asks; where the bench ends in the turn of a strategy, another goes
# on without it; where it does not say whose turn it was, after that request. Questions and answers are in
# NAME.txt.
serve() {
    name=$1 most=$(($2 * patience / 100)) tp=$3 requests=$4
    shift 4
    has_time "$name" || return
    until=$(($(date +%s) + most))
    if [ "$until" -gt "$ends" ]; then until=$ends; fi
    cp "$requests" "$out/$name.txt"
    cp "$requests" "$out/asked"
    : >"$out/$name.err"
    status=124 start=0 names=$usual
    [ "$name" != unfused ] || names=$(echo "$several" | tr ',' ' ')
    while [ "$start" -lt "$most_starts" ]; do
        start=$((start + 1))
        lines=$(wc -l <"$out/$name.txt")
        seconds=$((until - $(date +%s)))
        [ "$seconds" -gt 0 ] || break
        timeout -k 5 "$seconds" "$bench" --serve --ranks "$tp" --workspace "$workspace" --emulate-nvfp4 \
            --timeout "$deadline" "$@" <"$out/asked" >>"$out/$name.txt" 2>>"$out/$name.err"
        status=$?
        case $status in 0 | 124 | 137) break ;; esac
        judge "$name" "$status"
        rest=
        culprit=$(tail -n "+$((lines + 1))" "$out/$name.txt" | sed -n 's/^error strategy=\([^ ]*\) .*/\1/p' |
            head -n 1)
        if [ -n "$culprit" ]; then
            # shellcheck disable=SC2086
            rest=$(joined_without "$culprit" $names)
            names=$(echo "$rest" | tr ',' ' ')
            echo "        that was $culprit; it goes on without it"
            [ -n "$rest" ] || break
        else
            echo "        that was its start number $start"
        fi
        unanswered "$out/asked" "$out/$name.txt" "$rest" >"$out/asked.next"
        mv "$out/asked.next" "$out/asked"
        [ -s "$out/asked" ] || break
    done
    case $status in 0 | 124 | 137) judge "$name" "$status" ;; esac
    rm -f "$out/asked"
    grep -q "^row " "$out/$name.txt" || fails "$name" "nothing has a time"
    wrong=$(grep "^none .* reason=.*\(wrong\|differ\|gave up\)" "$out/$name.txt" | head -n 3)
    [ -z "$wrong" ] || fails "$name" "$wrong"
}

# ---- everything ----------------------------------------------------------------------------------

checks >"$out/checks.txt"
sweep >"$out/requests.txt"
for tp in $sizes; do serve "rows.tp$tp" 85 "$tp" "$out/requests.txt" --loopback; done
for tp in $sizes; do serve "checked.tp$tp" 30 "$tp" "$out/checks.txt" --loopback; done
row_bytes=$((hidden * 2))
set -- --fusion RESIDUAL_RMS_NORM --hidden-size "$hidden" -b $row_bytes -e $((row_bytes * most_rows)) -f 4 \
    --samples "$((samples * 2))" --budget 0.2 --workspace "$workspace" --timeout "$deadline"
tabled streams 20 "$bench" --ranks "${sizes%% *}" --streams "$@"
tabled eager 20 "$bench" --ranks "${sizes%% *}" --loopback "$@"
tabled cold 20 "$bench" --ranks "${sizes%% *}" --loopback --mode cold "$@"
tabled cold_graph 20 "$bench" --ranks "${sizes%% *}" --loopback --mode cold_graph "$@"
kernels >"$out/kernels.txt"
serve unfused 30 "${sizes%% *}" "$out/kernels.txt" --loopback
tabled one_rank 40 "$bench" --ranks 1 --mode graph "$@"
if [ "${gpus:-0}" -gt 1 ]; then tabled gpu_each 60 "$bench" --ranks "$gpus" --mode graph "$@"; fi

PATH=$PATH:${CUDA_HOME:-/usr/local/cuda}/bin
if command -v compute-sanitizer >/dev/null; then
    # What a call of the driver answers the bench looks at itself, and asks for what may not be there.
    for tool in memcheck racecheck synccheck initcheck; do
        calls=$([ "$tool" != memcheck ] || echo --report-api-errors=no)
        # shellcheck disable=SC2086
        run "sanitize-$tool" 40 compute-sanitizer --tool "$tool" $calls --error-exitcode 1 "$bench" \
            --ranks 2 --loopback --strategies ONESHOT,TWOSHOT --fusion RESIDUAL_RMS_NORM --hidden-size 256 \
            -b 2K -e 2K --samples 2 --budget 0.01 --workspace 1M
    done
else
    echo "not run, for it is not here: compute-sanitizer"
fi

# ---- a short table -------------------------------------------------------------------------------

echo
echo "loopback, bf16 x $hidden, graph, us (floor): the fastest of each"
for tp in $sizes; do
    [ -f "$out/rows.tp$tp.txt" ] || continue
    awk -v tp="$tp" '
        function value(name) {
            if (!match($0, " " name "=[^ ]*")) return ""
            return substr($0, RSTART + length(name) + 2, RLENGTH - length(name) - 2)
        }
        $1 == "measure" {
            ids[++count] = value("id")
            shape[value("id")] = value("fusion") " " value("num_tokens")
        }
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
            for (i = 1; i <= count; i++) {
                id = ids[i]
                if (!(id in best)) continue
                printf "TP %d  %-44s %9.2f (%.2f)  %s\n", tp, shape[id], best[id], floor[id], who[id]
            }
            for (reason in reasons) printf "TP %d  no time for %d: %s\n", tp, reasons[reason], reason
        }' "$out/rows.tp$tp.txt"
done

# ---- against the aims ----------------------------------------------------------------------------

# figures TP FILE: what rows say, by awk, beside what is aimed at; nothing hangs on it.
figures() {
    [ -f "$2" ] || return
    awk -v tp="$1" -v most="$most_tokens" '
        function value(name) {
            if (!match($0, " " name "=[^ ]*")) return ""
            return substr($0, RSTART + length(name) + 2, RLENGTH - length(name) - 2)
        }
        function share(strategy, bytes, at) { # of the bandwidth of the copy, which moves 2 N M bytes
            at = "NONE " most " " strategy
            if (!(at in time)) return
            printf "TP %d  %s tokens, NONE: %s moves %.0f%% of what a copy does (aim: 80%%)\n", tp, most,
                strategy, 100 * bytes / 2 * bound[at] / time[at]
        }
        function small(tokens, aim, in_all, none, norm, fp8) {
            none = "NONE " tokens " ONESHOT"
            norm = "RESIDUAL_RMS_NORM " tokens " ONESHOT"
            fp8 = "RESIDUAL_RMS_NORM_QUANT_FP8 " tokens " ONESHOT"
            if (!(none in time)) return
            printf "TP %d  %d token(s), NONE: ONESHOT %.2f us%s, floor + %.2f us%s", tp, tokens, time[none],
                in_all, time[none] - floor[none], aim
            if (norm in time) printf "; RMS_NORM + %.2f us (aim: 1)", time[norm] - time[none]
            if (norm in time && fp8 in time) printf "; FP8 + %.2f us (aim: 0.5)", time[fp8] - time[norm]
            print ""
        }
        function kernels(fusion, tokens, fused, one, several) {
            fused = fusion " " tokens " ONESHOT"
            one = fused "_EPILOGUE"
            several = fused "_UNFUSED"
            if (!(fused in time) || !(one in time) || !(several in time)) return
            printf "TP %d  %d token(s), %s: fused %.2f us, %.2f times faster than with one kernel behind it",
                tp, tokens, fusion, time[fused], time[one] / time[fused]
            printf " (aim: 1.25), %.2f than with one for each step (aim: 1.6)\n", time[several] / time[fused]
        }
        $1 == "measure" { shape[value("id")] = value("fusion") " " value("num_tokens") }
        $1 == "row" {
            at = shape[value("id")] " " value("strategy")
            time[at] = value("time_us")
            floor[at] = value("floor_us")
            bound[at] = value("bound_us")
        }
        END {
            share("ONESHOT", 3 * tp + 2)
            share("TWOSHOT", 6)
            small(1, tp == 2 ? " (aim: 2.5)" : tp == 8 ? " (aim: 3.5)" : "",
                tp == 2 ? " (aim: 3.5)" : tp == 8 ? " (aim: 5)" : "")
            small(8, "", tp == 2 ? " (aim: 4.5)" : tp == 8 ? " (aim: 9)" : "")
            for (tokens = 1; tokens <= 16; tokens++) kernels("RESIDUAL_RMS_NORM", tokens)
            for (tokens = 1; tokens <= 16; tokens++) kernels("RESIDUAL_RMS_NORM_QUANT_FP8", tokens)
        }' "$2"
}

echo
echo "loopback, bf16 x $hidden, graph, against the aims:"
for tp in $sizes; do figures "$tp" "$out/rows.tp$tp.txt"; done
figures "${sizes%% *}" "$out/unfused.txt"
if [ -n "$failures" ]; then
    echo "FAILED:$failures; see $out"
    exit 1
fi
echo "verified"
