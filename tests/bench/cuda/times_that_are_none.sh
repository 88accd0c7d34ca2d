#!/bin/sh
# Invalid times on GPUs: a host that is later than the GPUs' delay, chains that do not take longer than
# shorter ones, calls that a graph leaves out. Each gives a reason in place of a time.
. "$(dirname "$0")/lib_stand_in.sh"
only cuda nccl nvidia-ml
small="-b 512 -e 512 --hidden-size 64 --samples 4 --budget 0.03"

# shellcheck disable=SC2086
{
    all_timed ONESHOT bench "slow_host" $small --strategies ONESHOT --samples 2
    for after in 0 20; do # at its first call; after verification
        all_timed TWOSHOT bench "slow_on=oneshot slow_after=$after" $small --strategies ONESHOT,TWOSHOT
        printed out "^# .* ONESHOT  .*a host took longer than its GPU's delay of [0-9]* us, 12 times"
    done
    for mode in graph cold_graph; do
        bench "gpus=1 no_slope" $small --mode $mode --loopback --strategies ONESHOT
        printed out "^# .* ONESHOT  .*a chain of [0-9]* calls took no longer than one of [0-9]*, 12 times"
    done
    # All calls of both chains are checked: here the short one, of 8 calls, leaves out its last.
    bench "gpus=1 lazy_graph=9" $small --mode graph --loopback --strategies ONESHOT
    wrong='s/^# .* ONESHOT .*wrong result in \([0-9]*\) of \([0-9]*\) timed calls.*/\1 \2/p'
    counts=$(sed -n "$wrong" "$WORK/out")
    [ -n "$counts" ] || fail "a wrong short chain is not seen"
    # A call that is wrong on both ranks counts once.
    [ "${counts% *}" -le "${counts#* }" ] || fail "of calls, more are wrong than were made: $counts"
}
