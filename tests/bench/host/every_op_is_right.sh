#!/bin/sh
# Every op with every strategy that supports it, for numbers of ranks that are and are not powers of two, for
# counts with few divisors, and for uneven splits with ranks without a share: no timed call is wrong. Counts
# that do not divide, and splits without any share, are rejected.
. "$(dirname "$0")/lib.sh"

# requests RANKS: elements are multiples of the number of ranks and of alltoallv's largest weight.
requests() {
    id=0
    for op in allgather reducescatter alltoall alltoallv broadcast; do
        splits=""
        [ $op != alltoallv ] || splits=splits=3:1
        for dtype in bfloat16 float16 float32; do
            for shares in 1 1001 40003; do
                id=$((id + 1))
                echo "measure id=$id op=$op dtype=$dtype count=$((shares * $1 * 3))" \
                    "min_samples=3 max_samples=3 budget_us=1000 seed=$id $splits"
            done
        done
    done
    echo "measure id=46 op=allgather dtype=float32 count=$(($1 + 1)) min_samples=1 max_samples=1"
    for splits in 0:1 2:0:1 0:0:0:0:0:1; do
        echo "measure id=47 op=alltoallv dtype=bfloat16 count=$((1001 * $1 * 2)) splits=$splits" \
            "min_samples=3 max_samples=3 budget_us=1000 strategies=MPI,DIRECT"
    done
}

for ranks in 2 3 5; do
    requests "$ranks" | run "$ranks" --serve >"$WORK/answers.$ranks"
    [ "$(grep -c '^done ' "$WORK/answers.$ranks")" = 49 ] ||
        fail "$ranks ranks: not every request was answered"
    grep '^none ' "$WORK/answers.$ranks" | grep -v '^none id=46 \|leave nothing for these ranks$' &&
        fail "$ranks ranks: something has no time"
    [ "$(grep -c '^none id=47 .*leave nothing' "$WORK/answers.$ranks")" = 2 ] ||
        fail "$ranks ranks: splits without a share"
    [ "$(grep -c '^row id=47 ' "$WORK/answers.$ranks")" = 4 ] || fail "$ranks ranks: no share has no time"
    grep -q '^none id=46 strategy=DIRECT reason=the elements do not divide among the ranks$' \
        "$WORK/answers.$ranks" || fail "$ranks ranks: what does not divide is measured"
    [ "$(grep -c "strategy=DIRECT .*bits=0*[1-9a-f]" "$WORK/answers.$ranks")" = 47 ] ||
        fail "$ranks ranks: DIRECT varies"
    [ "$(grep -c '^row .* strategy=MPI ' "$WORK/answers.$ranks")" = 47 ] ||
        fail "$ranks ranks: MPI does not do every op"
done

for wrong in "--op gemm" "--op allgather --splits 1:2" "--op alltoallv --splits 1:" \
    "--op alltoallv --splits 15" "--op alltoallv --splits 0:0" "--op broadcast --fusion RESIDUAL_RMS_NORM"; do
    # shellcheck disable=SC2086
    if "$BENCH" $wrong >/dev/null 2>"$WORK/said"; then fail "$wrong is taken"; fi
    [ "$(wc -l <"$WORK/said")" = 1 ] || fail "$wrong: not one line: $(cat "$WORK/said")"
done
