#!/bin/sh
# Verifies the GPU bench on a machine with a GPU, in less than eight minutes, with sh and the bench alone:
#
#   sh verify.sh FOLDER [OUT]   FOLDER has gentables-bench-cuda
#
# Rows and logs go to OUT, by default FOLDER/verified, and as one archive to OUT.tgz.
#
# It runs the parts that it lists first, the most important ones first, and prints how each ended; then a
# table of the fastest strategies, and figures beside the project's aims, which fail nothing; last "verified",
# or the names of the parts that failed: those with wrong results, without times, or without enough time.
# gpus.tpN.txt and rows.tpN.txt have the requests and the answers of the bench (bench/protocol/protocol.h), of
# which tables.sh makes tables elsewhere. machine.*.txt have the driver's view of the GPUs, before and after.
# If a strategy hangs or breaks the GPU, its part continues without it. Exit code 0: verified; 1: a part
# failed; 2: wrong use; 77: there is no GPU.
set -u
if [ ! -d "${1:-}" ]; then
    echo "usage: sh verify.sh FOLDER-OF-gentables-bench-cuda [OUT]" >&2
    exit 2
fi
folder=$1
bench=$folder/gentables-bench-cuda
out=${2:-$folder/verified}
# Smaller values make a shorter run.
ends=$(($(date +%s) + ${GENTABLES_VERIFY_SECONDS:-450}))
sizes=${GENTABLES_VERIFY_TP:-2 4 8}
hidden=${GENTABLES_VERIFY_HIDDEN:-7168}
some_tokens=${GENTABLES_VERIFY_TOKENS:-1 2 4 8 16 64 256 1024}
check_tokens=${GENTABLES_VERIFY_CHECK_TOKENS:-3 70}
most_tokens=${GENTABLES_VERIFY_MOST_TOKENS:-4681} # with the hidden size above 64 MiB of bfloat16
most_rows=${GENTABLES_VERIFY_ROWS:-16} # of the parts that print a table
kernels_tokens=${GENTABLES_VERIFY_KERNELS_TOKENS:-1 2 4 8 16} # of fused and separate kernels
samples=${GENTABLES_VERIFY_SAMPLES:-10}
workspace=${GENTABLES_VERIFY_WORKSPACE:-64M}
patience=${GENTABLES_VERIFY_PATIENCE:-100} # per cent of the time limit of each part
start_limit=${GENTABLES_VERIFY_START:-60} # seconds, of a start
deadline=${GENTABLES_VERIFY_DEADLINE:-10} # seconds, of a kernel
stage=${GENTABLES_VERIFY_STAGE:-}         # of the self-test; empty: all
parts=${GENTABLES_VERIFY_PARTS:-}         # names; empty: all
most_starts=8                             # of the bench, in one part
failures= # names of parts
switches= # options of the bench, for what the self-test shows not to work
mkdir -p "$out"

# fails NAME WHY
fails() {
    echo "FAILED  $1: $2"
    case "$failures " in *" $1 "*) ;; *) failures="$failures $1" ;; esac
}

# left SECONDS: prints the seconds that are left, at most SECONDS.
left() {
    seconds=$((ends - $(date +%s)))
    if [ "$seconds" -gt "$1" ]; then seconds=$1; fi
    if [ "$seconds" -lt 0 ]; then seconds=0; fi
    echo "$seconds"
}

# has_time NAME: returns whether to run the part. A requested part fails if no time is left.
has_time() {
    case " ${parts:-$1} " in *" $1 "*) ;; *) return 1 ;; esac
    [ "$(left 1)" -gt 0 ] && return 0
    fails "$1" "not run: no time was left"
    return 1
}

# within SECONDS COMMAND...: runs a command for at most so long, and at most for the time that is left.
within() {
    limit=$(left "$1")
    shift
    [ "$limit" -gt 0 ] || limit=1 # to timeout, 0 is no limit
    timeout -k 5 "$limit" "$@"
}

# judge NAME STATUS: prints how a part ended.
judge() {
    case $2 in
    0) echo "ok      $1" ;;
    124 | 137) fails "$1" "timeout; its partial results are in $out" ;;
    *) fails "$1" "exit code $2: $(tail -n 1 "$out/$1.err")" ;;
    esac
}

# run NAME SECONDS COMMAND...: runs a part; NAME.txt and NAME.err get its output, $status its exit code.
run() {
    name=$1 most=$(($2 * patience / 100)) status=1
    shift 2
    has_time "$name" || return
    status=0
    within "$most" "$@" >"$out/$name.txt" 2>"$out/$name.err" || status=$?
    judge "$name" "$status"
}

# tabled NAME SECONDS COMMAND...: runs a part that prints a table, in which no result is wrong and a strategy
# has a time. With one rank, NCCL is the only candidate.
tabled() {
    run "$@"
    [ "$status" = 0 ] || return
    grep -q "^# Out of bounds values : 0 OK" "$out/$1.txt" ||
        fails "$1" "wrong results, or none; see $out/$1.txt"
    if [ "$1" = one_rank ] && grep -q "no NCCL" "$out/version.txt"; then return; fi
    grep -qE "^ +[0-9]+ +[0-9]+ +[a-z0-9]+ +[a-z]+ +[A-Z0-9_]+ +[0-9.]+ " "$out/$1.txt" ||
        fails "$1" "no strategy has a time"
}

# record_machine WHEN: what the driver reports: GPUs, clocks, reasons for throttling, links, and its errors
# (Xid), as far as this user may read them.
record_machine() {
    for command in "nvidia-smi" "nvidia-smi topo -m" "nvidia-smi nvlink --status" "nvidia-smi -q" \
        "cat /proc/driver/nvidia/version" "uname -a" "dmesg"; do
        echo "\$ $command"
        # shellcheck disable=SC2086
        within 20 $command 2>&1
    done | awk '$1 == "$" { of_kernel = $2 == "dmesg" } !of_kernel || $1 == "$" || /NVRM|Xid/' \
        >"$out/machine.$1.txt"
}

# ---- a bench that starts -------------------------------------------------------------------------

# why_not: prints the reason why the bench does not take requests, in one line; nothing if it does.
too_slow="no start within $start_limit s"
why_not() {
    echo quit | within "$start_limit" "$bench" --serve --ranks 2 --loopback --workspace 1M \
        --timeout "$deadline" >"$out/try.txt" 2>"$out/try.err"
    status=$?
    case $status in
    0) return ;;
    124 | 137)
        echo "$too_slow"
        return
        ;;
    esac
    line=$(grep -v ": warning: " "$out/try.err" | head -n 1)
    echo "${line:-exit code $status}"
}

# rebuild REASON: builds the bench for this machine; returns whether the build succeeded.
rebuild() {
    echo "rebuilding the bench (up to 4 minutes): $1"
    within 240 sh "$folder/rebuild.sh" "$folder" >"$out/rebuild.txt" 2>&1 && return
    tail -n 20 "$out/rebuild.txt"
    return 1
}

# A rebuild takes minutes. It helps if the kernels are for another GPU, the driver is too old, compiles the
# kernels for longer than the limit, or cannot compile them, or the program does not load; not after a failure
# on the GPU.
reason=$(why_not)
case $reason in
"" | *"no CUDA driver"* | *"no GPU"*) ;;
"$too_slow")
    if rebuild "$reason"; then
        reason=$(why_not)
    else
        echo "the rebuild failed; the parts try the program as it is"
    fi
    ;;
"gentables-bench: kernels were built "* | *"UNSUPPORTED_PTX_VERSION"* | *"NO_BINARY_FOR_GPU"* | \
    *"older than this program"* | *"the CUDA driver has no"* | *"GLIBC"* | *"not found"* | \
    *"cannot execute"* | *"Exec format"* | *"error while loading"* | *"No such file"* | *"ermission denied"*)
    if ! rebuild "$reason"; then
        echo "FAILED: the rebuild failed; see $out/rebuild.txt"
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
if within 60 "$bench" --version | grep -q "no NCCL"; then # one of a Python package may be elsewhere
    nccl=$(within 20 find / -xdev -name libnccl.so.2 -print -quit 2>/dev/null)
    if [ -n "$nccl" ]; then
        LD_LIBRARY_PATH=$(dirname "$nccl"):${LD_LIBRARY_PATH:-}
        export LD_LIBRARY_PATH
    fi
fi
within 60 "$bench" --version | tee "$out/version.txt"
gpus=$(sed -n 's/.* on \([0-9]*\) x .*/\1/p' "$out/version.txt")
within 60 "$bench" --candidates >"$out/candidates.txt"
usual=$(sed -n 's/^candidate name=\([^ ]*\) .* usual=1 .*/\1/p' "$out/candidates.txt")
fusions=$(sed -n 's/^fusion name=//p' "$out/candidates.txt")

record_machine before

# ---- requests ------------------------------------------------------------------------------------

# request DTYPE FUSION HIDDEN TOKENS MODE SAMPLES BUDGET: prints a request.
id=0
request() {
    id=$((id + 1))
    echo "measure id=$id op=allreduce dtype=$1 fusion=$2 hidden_size=$3 num_tokens=$4 mode=$5" \
        "min_samples=$6 max_samples=$(($6 * 10)) budget_us=$7 precision=0.01 seed=$id"
}

# Each data type with each epilogue, with a row that is no power of two: few tokens, and many.
checks() {
    for dtype in bfloat16 float16 float32; do
        for fusion in $fusions; do
            for tokens in $check_tokens; do
                request $dtype "$fusion" $((hidden * 2 / 5 / 32 * 32)) "$tokens" eager 3 20000
            done
        done
    done
}

# The sweep, from small to large, because the host takes longest to verify large messages.
sweep() {
    for tokens in $some_tokens; do
        for fusion in $fusions; do
            request bfloat16 "$fusion" "$hidden" "$tokens" graph "$samples" 200000
        done
    done
    for fusion in $fusions; do
        request bfloat16 "$fusion" "$hidden" "$most_tokens" graph "$((samples / 2))" 200000
    done
}

# Each epilogue between processes. With time slices of one GPU, calls take milliseconds.
processes() {
    for fusion in $fusions; do
        request bfloat16 "$fusion" "$hidden" "${check_tokens%% *}" eager 3 20000
    done
}

# A fused kernel; one more kernel for the epilogue; and one for each step of it.
several=ONESHOT,ONESHOT_EPILOGUE,ONESHOT_UNFUSED
kernels() {
    for tokens in $kernels_tokens; do
        for fusion in RESIDUAL_RMS_NORM RESIDUAL_RMS_NORM_QUANT_FP8; do
            echo "$(request bfloat16 $fusion "$hidden" "$tokens" graph "$((samples * 2))" 200000)" \
                "strategies=$several"
            id=$((id + 1)) # request counted in a subshell
        done
    done
}

# unanswered REQUESTS ANSWERS STRATEGIES: prints the requests without an answer, for these strategies; if
# there are none, without the first one, at which the bench ended.
unanswered() {
    awk -v strategies="$3" '
        FILENAME == ARGV[1] { if ($1 == "done") done[$2] = 1; next }
        $2 in done { next }
        strategies == "" && !dropped { dropped = 1; next }
        strategies != "" { sub(/ strategies=[^ ]*/, ""); $0 = $0 " strategies=" strategies }
        { print }' "$2" "$1"
}

# joined_without NAME NAMES: prints the other names, separated by commas.
joined_without() {
    culprit=$1
    shift
    joined=
    for one in "$@"; do
        [ "$one" = "$culprit" ] || joined=$joined${joined:+,}$one
    done
    echo "$joined"
}

# serve NAME SECONDS TP REQUESTS OPTION...: sends requests to the bench. If it ends while a strategy is at
# work, a new bench continues without that strategy; if it does not report the strategy, after that request.
# NAME.txt gets requests and answers.
serve() {
    name=$1 most=$(($2 * patience / 100)) tp=$3 requests=$4
    shift 4
    has_time "$name" || return
    until=$(($(date +%s) + most))
    if [ "$until" -gt "$ends" ]; then until=$ends; fi
    cp "$requests" "$out/$name.txt"
    cp "$requests" "$out/pending"
    : >"$out/$name.err"
    status=124 start=0 names=$usual
    [ "$name" != unfused ] || names=$(echo "$several" | tr ',' ' ')
    while [ "$start" -lt "$most_starts" ]; do
        start=$((start + 1))
        lines=$(wc -l <"$out/$name.txt")
        seconds=$((until - $(date +%s)))
        [ "$seconds" -gt 0 ] || break
        # shellcheck disable=SC2086
        timeout -k 5 "$seconds" "$bench" --serve --ranks "$tp" --workspace "$workspace" --emulate-nvfp4 \
            --timeout "$deadline" $switches "$@" <"$out/pending" >>"$out/$name.txt" 2>>"$out/$name.err"
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
            echo "        $culprit was at work; the part continues without it"
            [ -n "$rest" ] || break
        else
            echo "        start $start of at most $most_starts; the part continues after that request"
        fi
        unanswered "$out/pending" "$out/$name.txt" "$rest" >"$out/pending.next"
        mv "$out/pending.next" "$out/pending"
        [ -s "$out/pending" ] || break
    done
    case $status in 0 | 124 | 137) judge "$name" "$status" ;; esac
    rm -f "$out/pending"
    grep -q "^row " "$out/$name.txt" || fails "$name" "no strategy has a time"
    wrong=$(grep "^none .* reason=.*\(wrong\|differ\|gave up\)" "$out/$name.txt" | head -n 3)
    [ -z "$wrong" ] || fails "$name" "$wrong"
}

# ---- the parts -----------------------------------------------------------------------------------

cat <<END_OF_PARTS
logs are in $out; parts:
  self_test      the driver and the GPU in stages: gentables-bench-cuda --self-test
  gpus.tpN       a sweep of N ranks with a GPU each, as far as there are GPUs, with every call verified
  rows.tpN       the same with ranks that share one GPU (loopback)
  checked.tpN    each data type with each epilogue
  processes.tpN  a process for each rank, with a GPU each or, with too few GPUs, with time slices of one
  streams        a stream for each rank instead of joint launches
  eager, cold, cold_graph  the other modes of timing
  unfused        fused kernels, and epilogues in kernels of their own
  one_rank       NCCL alone
  gpu_each       a GPU for each rank, if there are several
  sanitize-TOOL  compute-sanitizer on small sizes, if it is installed
END_OF_PARTS

run self_test 40 "$bench" "--self-test${stage:+=$stage}" --timeout "$((deadline / 3 + 1))"
grep -sE "^(FAILED|off|skipped) " "$out/self_test.txt" | sed "s/^/        /"
switches=$(sed -n 's/^off .* without it: \(--no-[a-z]*\)$/\1/p' "$out/self_test.txt" 2>/dev/null |
    tr '\n' ' ')

checks >"$out/checks.txt"
sweep >"$out/requests.txt"
for tp in $sizes; do
    if [ "$tp" -le "${gpus:-0}" ]; then serve "gpus.tp$tp" 60 "$tp" "$out/requests.txt"; fi
done
for tp in $sizes; do serve "rows.tp$tp" 85 "$tp" "$out/requests.txt" --loopback; done
for tp in $sizes; do serve "checked.tp$tp" 30 "$tp" "$out/checks.txt" --loopback; done
processes >"$out/processes.txt"
for tp in $sizes; do
    shared=$([ "$tp" -le "${gpus:-0}" ] || echo --loopback)
    # shellcheck disable=SC2086
    serve "processes.tp$tp" 30 "$tp" "$out/processes.txt" --processes $shared
done
row_bytes=$((hidden * 2))
# shellcheck disable=SC2086
set -- $switches --fusion RESIDUAL_RMS_NORM --hidden-size "$hidden" -b $row_bytes \
    -e $((row_bytes * most_rows)) -f 4 --samples "$((samples * 2))" --budget 0.2 \
    --workspace "$workspace" --timeout "$deadline"
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
    # The bench checks the results of driver calls itself; some of them may fail as expected.
    for tool in memcheck racecheck synccheck initcheck; do
        calls=$([ "$tool" != memcheck ] || echo --report-api-errors=no)
        # shellcheck disable=SC2086
        run "sanitize-$tool" 40 compute-sanitizer --tool "$tool" $calls --error-exitcode 1 "$bench" \
            --ranks 2 --loopback --strategies ONESHOT,TWOSHOT --fusion RESIDUAL_RMS_NORM --hidden-size 256 \
            -b 2K -e 2K --samples 2 --budget 0.01 --workspace 1M
    done
else
    echo "skipped sanitize-*: compute-sanitizer is not installed"
fi

# ---- a short table -------------------------------------------------------------------------------

# fastest TP FILE: the fastest strategy of each request, and the reasons for missing times.
fastest() {
    [ -f "$2" ] || return
    awk -v tp="$1" '
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
            fastest[id] = value("strategy")
            floor[id] = value("floor_us")
        }
        $1 == "none" { reasons[substr($0, index($0, "reason=") + 7)]++ }
        END {
            for (i = 1; i <= count; i++) {
                id = ids[i]
                if (!(id in best)) continue
                printf "TP %d  %-44s %9.2f (%.2f)  %s\n", tp, shape[id], best[id], floor[id], fastest[id]
            }
            for (reason in reasons) printf "TP %d  %d without a time: %s\n", tp, reasons[reason], reason
        }' "$2"
}

echo
echo "the fastest strategies (bfloat16, hidden size $hidden, graph): us (of an empty kernel)"
for tp in $sizes; do
    if [ -f "$out/gpus.tp$tp.txt" ]; then echo "a GPU for each of $tp ranks:"; fi
    fastest "$tp" "$out/gpus.tp$tp.txt"
done
echo "all ranks on one GPU (loopback):"
for tp in $sizes; do fastest "$tp" "$out/rows.tp$tp.txt"; done

# ---- against the aims ----------------------------------------------------------------------------

# figures TP FILE: prints figures of the rows beside the aims; no part fails because of them. The aims are for
# ranks that share one GPU.
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
            printf "TP %d  %s tokens, NONE: %s reaches %.0f%% of the bandwidth of a copy (aim: 80%%)\n", tp,
                most, strategy, 100 * bytes / 2 * bound[at] / time[at]
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
            printf "TP %d  %d token(s), %s: fused %.2f us; speedup %.2f over one kernel for the epilogue",
                tp, tokens, fusion, time[fused], time[one] / time[fused]
            printf " (aim: 1.25), %.2f over one for each step (aim: 1.6)\n", time[several] / time[fused]
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
echo "figures beside the aims (loopback, bfloat16, hidden size $hidden, graph):"
for tp in $sizes; do figures "$tp" "$out/rows.tp$tp.txt"; done
figures "${sizes%% *}" "$out/unfused.txt"
echo
record_machine after
if tar -czf "$out.tgz" -C "$(dirname "$out")" "$(basename "$out")"; then
    echo "all logs in one file: $out.tgz"
fi
echo "to make tables and a report of the rows, in the source tree: sh bench/cuda/tables.sh $out"
if [ -n "$failures" ]; then
    echo "FAILED:$failures; see $out"
    exit 1
fi
echo "verified"
