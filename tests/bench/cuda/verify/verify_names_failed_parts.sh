#!/bin/sh
# verify.sh with a bench that hangs, ends with an error, is wrong or prints no times: each failed part is
# reported and listed in the last line, the others run, and the script ends in time. The bench is a script
# here; a hang is a script that never ends.
. "$SOURCE/tests/lib.sh"
mkdir "$WORK/bench" "$WORK/tools"

# BAD: parts and their faults, such as eager=hang.
cat >"$WORK/bench/gentables-bench-cuda" <<'END_OF_BENCH'
#!/bin/sh
echo "$*" >>"$(dirname "$0")/calls"
case "$*" in
*--version*) part=version ;;
*--candidates*) part=candidates ;;
*--self-test*) part=self_test ;;
*--workspace\ 1M*) part=start ;;
*--serve*) part=serve ;;
*--streams*) part=streams ;;
*--mode\ cold_graph*) part=cold_graph ;;
*--mode\ cold*) part=cold ;;
*--ranks\ 1*) part=one_rank ;;
*) part=eager ;;
esac
asked=
if [ $part = serve ]; then
    asked=$(cat)
    case $asked in
    *strategies=*) part=unfused ;;
    *float16*dtype=float32*) part=checked.tp2 ;;
    *) part=rows.tp2 ;;
    esac
    case "$*" in *--processes*) part=processes.tp2 ;; esac
fi
case " $BAD " in
*" $part=hang "*) exec tail -f /dev/null ;;
*" $part=error "*)
    echo "gentables-bench: an error of the script" >&2
    exit 3
    ;;
*" $part=wrong "*) word="none reason=wrong result in 1 of 2 timed calls" ;;
*" $part=untimed "*) word="none reason=no such thing" ;;
*) word="row time_us=2 floor_us=1 bound_us=1" ;;
esac
case $part in
version) echo "bench 1 on 1 x script" ;;
candidates) printf "%s\n" "fusion name=NONE" "candidate name=ONESHOT kind=own usual=1 more=0" ;;
self_test)
    case $word in
    row*) echo "ok      context: a script" ;;
    *)
        echo "FAILED  programmatic: a fault"
        echo "off     programmatic; to run the bench without it: --no-programmatic"
        echo "FAILED: 1 of 2 stages failed"
        exit 1
        ;;
    esac
    ;;
streams | eager | cold | cold_graph | one_rank)
    case $word in
    row*) echo "         512          256  bfloat16    sum ONESHOT     3.00     0.17     0.17      0" ;;
    *) echo "         512          256  bfloat16    sum ONESHOT     ${word#*=}" ;;
    esac
    case $word in
    *wrong*) echo "# Out of bounds values : 2 FAILED" ;;
    *) echo "# Out of bounds values : 0 OK" ;;
    esac
    ;;
*)
    echo "$asked" | while read -r asks id _; do
        [ "$asks" = measure ] || continue
        echo "${word%% *} $id strategy=ONESHOT ${word#* }"
        case $word in *wrong*) echo "row $id strategy=TWOSHOT time_us=2 floor_us=1 bound_us=1" ;; esac
        echo "done $id"
    done
    ;;
esac
END_OF_BENCH
printf '#!/bin/sh\nexit 0\n' >"$WORK/tools/compute-sanitizer"
chmod +x "$WORK/bench/gentables-bench-cuda" "$WORK/tools/compute-sanitizer"

# verify CODE LAST_LINE NAME=VALUE...
verify() {
    wanted=$1 last=$2 status=0
    shift 2
    env PATH="$WORK/tools:$PATH" GENTABLES_VERIFY_TP=2 "$@" timeout 480 \
        sh "$SOURCE/bench/cuda/verify.sh" "$WORK/bench" "$WORK/verified" >"$WORK/out" 2>"$WORK/err" ||
        status=$?
    [ "$status" = "$wanted" ] || fail "$*: exit code $status, not $wanted"
    [ "$(tail -n 1 "$WORK/out")" = "$last" ] || fail "$*: the last line is not: $last"
}
# prints LINE
prints() { grep -qxF -- "$1" "$WORK/out" || fail "not printed: $1"; }
see="see $WORK/verified"

verify 0 "verified" BAD=
if grep -q "^FAILED" "$WORK/out"; then fail "a part of a right bench failed"; fi

# A fraction of a part's time is enough for a hang.
verify 1 "FAILED: checked.tp2 eager cold unfused one_rank; $see" GENTABLES_VERIFY_PATIENCE=20 \
    BAD="checked.tp2=untimed eager=hang cold=error unfused=hang one_rank=error"
prints "FAILED  checked.tp2: no strategy has a time"
prints "FAILED  eager: timeout; its partial results are in $WORK/verified"
prints "FAILED  cold: exit code 3: gentables-bench: an error of the script"
prints "FAILED  unfused: timeout; its partial results are in $WORK/verified"
prints "FAILED  unfused: no strategy has a time"
for part in rows.tp2 processes.tp2 streams cold_graph sanitize-memcheck; do prints "ok      $part"; done

# The parts with a table.
verify 1 "FAILED: streams eager one_rank; $see" BAD="streams=wrong eager=untimed one_rank=untimed"
prints "FAILED  streams: wrong results, or none; see $WORK/verified/streams.txt"
prints "FAILED  eager: no strategy has a time"
prints "FAILED  one_rank: no strategy has a time"

verify 1 "FAILED: processes.tp2; $see" BAD="processes.tp2=wrong"
grep -q -e "--processes --loopback" "$WORK/bench/calls" || fail "processes do not share the only GPU"
verify 1 "FAILED: rows.tp2; $see" BAD="rows.tp2=wrong"
prints "ok      checked.tp2"
verify 1 "FAILED: rows.tp2; $see" BAD="rows.tp2=error"
prints "FAILED  rows.tp2: exit code 3: gentables-bench: an error of the script"
verify 1 "FAILED: start; $see" BAD="start=error"
verify 1 "FAILED: self_test; $see" BAD="self_test=error"
prints "FAILED  self_test: exit code 3: gentables-bench: an error of the script"

# What the self-test shows not to work is switched off for the other parts.
: >"$WORK/bench/calls"
verify 1 "FAILED: self_test; $see" BAD="self_test=wrong"
prints "        off     programmatic; to run the bench without it: --no-programmatic"
for part in --serve --streams "--mode cold "; do
    grep -e "$part" "$WORK/bench/calls" | grep -v -e "--workspace 1M" | grep -q -e "--no-programmatic" ||
        fail "$part: programmatic launches are not switched off"
done

# If the total time is over, the parts that did not run are listed, too.
verify 1 "FAILED: rows.tp2 checked.tp2 processes.tp2 streams eager cold cold_graph unfused one_rank \
sanitize-memcheck sanitize-racecheck sanitize-synccheck sanitize-initcheck; $see" \
    GENTABLES_VERIFY_SECONDS=8 BAD="rows.tp2=hang"
prints "FAILED  one_rank: not run: no time was left"
