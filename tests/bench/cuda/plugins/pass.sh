#!/bin/sh
# gentables tune on GPUs: one pass over all ops, in one random order that all ranks share, with sums alone
# among the ways that have an epilogue; or op by op, with the same answers; or in several orders, if not all
# of them fit in memory at once.
. "$(dirname "$0")/../lib_stand_in.sh"
. "$(dirname "$0")/lib_plugins.sh"
only cuda nccl nvidia-ml

# pass SYNC ARGUMENT...: three ops, and one with an epilogue.
pass() {
    tokens="hidden_size=64 num_tokens=4"
    cat >"$WORK/input" <<END
pass samples=5 warm_up=1 seed=3 sync=$1
measure id=1 op=allreduce dtype=bfloat16 count=512 strategies=NCCL,ONESHOT,NOTED
measure id=2 op=allgather dtype=bfloat16 count=256 strategies=NCCL,ONESHOT
measure id=3 op=allreduce dtype=bfloat16 $tokens fusion=RESIDUAL_RMS_NORM strategies=NCCL,NOTED
measure id=3 op=allreduce dtype=bfloat16 $tokens fusion=NONE strategies=NCCL,NOTED
END
    shift
    rm -f "$WORK"/notes.*
    NOTES=$WORK/notes
    export NOTES
    ends 0 "" --pass "$WORK/input" --plugin "$PLUGINS/fused.so" "$@"
}

# timed: expects a time of every candidate of every request, reduced in each way.
timed() {
    printed out "^none id=2 strategy=ONESHOT .*does not support this op"
    for row in "1 strategy=NCCL" "1 strategy=ONESHOT" "1 strategy=NOTED" "2 strategy=NCCL"; do
        printed out "^row id=$row time_us=.* samples=5 .* fusion=NONE mean_of_max_us=[0-9]"
    done
    for fusion in RESIDUAL_RMS_NORM NONE; do
        for name in NCCL NOTED; do
            printed out "^row id=3 strategy=$name time_us=.* fusion=$fusion "
        done
    done
}

# The calls of NOTED in a row, after its three requests were verified.
order() {
    uniq "$WORK/notes.0" | tail -n +4 >"$WORK/order"
    uniq "$WORK/notes.1" | tail -n +4 | cmp -s - "$WORK/order" || fail "ranks differ in the order"
    [ "$(grep -c '^256 0$' "$WORK/order")" -gt 1 ] || fail "the sum alone is not amid: $(cat "$WORK/order")"
}

pass pass
timed
order
[ "$(grep -c '^512 0$' "$WORK/order")" -gt 1 ] || fail "no random order: $(cat "$WORK/order")"
printed out '^pass total_us=[1-9].* op_total_us=0.0 '

pass op
timed
order
[ "$(grep -c '^512 0$' "$WORK/order")" = 1 ] || fail "ops are mixed: $(cat "$WORK/order")"
printed out '^pass total_us=0.0 .* op_total_us=[1-9]'

pass both
timed
printed out '^pass total_us=[1-9].* op_total_us=[1-9]'
[ "$(grep -c '^row .* op_us=[0-9.]*[1-9]' "$WORK/out")" = 8 ] || fail "no time op by op"

# Memory is sufficient for each of two requests alone, and for the third not at all.
cat >"$WORK/input" <<END
pass samples=3 warm_up=0 seed=1 sync=pass
measure op=allreduce dtype=bfloat16 count=200000 strategies=NCCL
measure op=broadcast dtype=bfloat16 count=220000 strategies=NCCL
measure op=broadcast dtype=bfloat16 count=2000000 strategies=NCCL
END
ends 0 "" --pass "$WORK/input" --arena 2M
printed out "^row id=1 strategy=NCCL .* samples=3 "
printed out "^row id=2 strategy=NCCL .* samples=3 "
printed out "^none id=3 strategy=NCCL .*its data need"
# The progress over the whole pass: NCCL and the bound of each request, three times.
for done in 6 12; do
    printed out "^progress done=$done of=18\$"
done

# If a communicator is lost, the op that used it is lost; the ops before and after it use another. Graphs that
# were captured with it are destroyed before it, and are captured again with the new one.
allreduces() {
    echo "pass samples=2 warm_up=0 seed=1 sync=pass"
    for count in 512 256 1024; do
        echo "measure op=allreduce dtype=bfloat16 count=$count mode=$1 strategies=NCCL,ONESHOT"
    done
}
for mode in graph eager; do
    allreduces $mode >"$WORK/input"
    ends 0 "nccl_breaks=256" --pass "$WORK/input"
    for id in 1 3; do printed out "^row id=$id strategy=NCCL .* mode=$mode "; done
    printed out "^none id=2 strategy=NCCL .*NCCL, allreduce: the stand-in"
    if grep "a graph holds" "$WORK/err"; then fail "a graph is left of a communicator that is lost"; fi
done
# If the second communicator is lost, too, a prepared op gets a third; no op is called without one.
ends 0 "nccl_breaks=256 nccl_breaks_behind=512,1024" --pass "$WORK/input"
printed out "^row id=1 strategy=NCCL "
for id in 2 3; do printed out "^none id=$id strategy=NCCL .*NCCL, allreduce: the stand-in"; done

# If the host is always late for a candidate, the candidate has a reason in place of a time; here the host is
# late after verification.
echo "pass samples=3 warm_up=1 seed=1 sync=pass
measure op=allreduce dtype=bfloat16 count=512 strategies=ONESHOT,NCCL" >"$WORK/input"
ends 0 "slow_on=oneshot slow_after=20" --pass "$WORK/input"
printed out "^row id=1 strategy=NCCL "
printed out "^none id=1 strategy=ONESHOT .*a host took longer than its GPU's delay"
if grep "^row .*strategy=ONESHOT " "$WORK/out"; then fail "a time although the host is late"; fi

# Calls in a row print a message about missing memory, too.
bench "" --arena 512K -b 1M -e 1M -n 3 --strategies NCCL
printed out "^# .* NCCL  *its data need [0-9]* KiB"

# In one launch for all ranks, too; an epilogue that ignores the stream is not timed.
input="pass samples=3 warm_up=0 seed=1 sync=pass
measure op=allreduce dtype=bfloat16 count=512 strategies=ONESHOT,ONESHOT_NATIVE"
echo "$input" >"$WORK/input"
bench "gpus=1" --pass "$WORK/input" --loopback
[ "$(grep -c '^row ' "$WORK/out")" = 2 ] || fail "one launch for all"
bench "gpus=1 late_on=oneshot_bf16_fp32" --pass "$WORK/input" --loopback
printed out "^row id=1 strategy=ONESHOT_NATIVE "
printed out "^none id=1 strategy=ONESHOT .*wrong result"

# A size without a shape is taken as rows of tokens with any number of 16 bytes, odd or prime; the candidate
# reports a size that it cannot split so.
sizes() {
    echo "pass samples=2 warm_up=0 seed=1 sync=pass"
    for count in 8 16 24 1000 1001 8072 32768; do
        echo "measure id=$count op=allreduce dtype=bfloat16 count=$count strategies=$1"
    done
}
# in_rows STRATEGY...
in_rows() {
    for strategy in "$@"; do
        for count in 16 24 1000 8072 32768; do
            printed out "^row id=$count strategy=$strategy "
        done
        printed out "^none id=1001 strategy=$strategy .*is no multiple of 16 bytes, which"
    done
}
sizes ONESHOT,TWOSHOT,TWOSHOT_NATIVE,NVLS_ONESHOT,NVLS_TWOSHOT >"$WORK/input"
bench "multicast" --pass "$WORK/input"
in_rows ONESHOT TWOSHOT TWOSHOT_NATIVE NVLS_ONESHOT NVLS_TWOSHOT
for strategy in TWOSHOT TWOSHOT_NATIVE NVLS_TWOSHOT; do
    printed out "^none id=8 strategy=$strategy .*fewer than 16 bytes for each rank"
done
sizes ONESHOT,TWOSHOT >"$WORK/input"
bench "gpus=1" --pass "$WORK/input" --loopback
in_rows ONESHOT TWOSHOT

# One candidate with a separate epilogue has no name of its own here.
gentables 2 "" tune --backend cuda --bench "$BENCH" --op allreduce --sizes 4K --fusion RESIDUAL_RMS_NORM \
    --hidden-size 64 --plugin "$PLUGINS/fused.so" --strategies NOTED,NOTED_EPILOGUE
printed err "NOTED_EPILOGUE is NOTED with its epilogue apart.*NOTED is required"
