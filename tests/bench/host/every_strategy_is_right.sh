#!/bin/sh
# Every strategy, data type and fusion, for TP sizes that are and are not powers of two, in shapes with few
# divisors: no timed call is wrong, and only impossible combinations are left out, with a reason that names
# them.
. "$(dirname "$0")/lib.sh"

fusions=$("$BENCH" --candidates | sed -n 's/^fusion name=//p')
# shellcheck disable=SC2086
count=$(($(printf '%s\n' $fusions | wc -l) * 12 + 2)) # requests

requests() {
    id=0
    for dtype in bfloat16 float16 float32; do
        for fusion in $fusions; do
            for shape in "1 16" "3 80" "7 2880" "37 4096"; do
                id=$((id + 1))
                echo "measure id=$id dtype=$dtype fusion=$fusion num_tokens=${shape% *}" \
                    "hidden_size=${shape#* } min_samples=2 max_samples=2 budget_us=1000" \
                    "seed=$id op=allreduce mode=eager"
            done
        done
    done
    echo "measure id=1000 dtype=bfloat16 fusion=NONE num_tokens=1 hidden_size=1" \
        "min_samples=2 max_samples=2 budget_us=1"
    echo "measure id=1001 dtype=float16 fusion=RESIDUAL_RMS_NORM num_tokens=65 hidden_size=16383" \
        "min_samples=1 max_samples=1 budget_us=1"
}

for ranks in 2 3 4 5; do
    requests | run "$ranks" --serve >"$WORK/answers.$ranks"
    [ "$(grep -c '^done ' "$WORK/answers.$ranks")" = "$count" ] ||
        fail "$ranks ranks: not every request was answered"
    grep -q "wrong result\|differ in the bits" "$WORK/answers.$ranks" &&
        fail "$ranks ranks: $(grep "wrong result\|differ in the bits" "$WORK/answers.$ranks" | head -1)"
    sed -n 's/^strategy name=\([^ ]*\) status=available$/\1/p' "$WORK/answers.$ranks" >"$WORK/available"
    while read -r strategy; do
        grep -q "^[a-z]* id=1 strategy=$strategy " "$WORK/answers.$ranks" || continue # it does no allreduce
        have=$(grep -c "^row .* strategy=$strategy " "$WORK/answers.$ranks" || true)
        why="reason=\(fewer tokens than ranks\|without an epilogue it is TWOSHOT\)"
        refused=$(grep -c "^none .* strategy=$strategy $why\$" "$WORK/answers.$ranks" || true)
        [ $((have + refused)) = "$count" ] ||
            fail "$ranks ranks, $strategy: $have rows and $refused refusals of $count"
        least=25
        if [ "$strategy" = TWOSHOT_DIVIDED ]; then least=19; fi # with fusions only
        [ "$have" -ge "$least" ] || fail "$ranks ranks, $strategy: only $have rows"
    done <"$WORK/available"
    for strategy in MPI ONESHOT TWOSHOT; do
        printed "answers.$ranks" "^strategy name=$strategy status=available"
        grep -q "^row id=4 strategy=$strategy " "$WORK/answers.$ranks" || fail "$strategy does no AllReduce"
    done
done
grep -h -o "accumulate=[a-z0-9]*" "$WORK"/answers.* | sort | uniq -c
