#!/bin/sh
# Chains of a graph on GPUs: their lengths; no time includes the launch of a graph; and the bounds of slow
# links.
. "$(dirname "$0")/lib_stand_in.sh"
only cuda nccl nvidia-ml

# No time includes the launch of a graph, even if memory for few calls is left: three at least, of messages of
# 32 KiB. With less memory there is no time.
# answers SETTINGS OPTION...: the bench's answers to a request on standard input
answers() {
    settings=$1
    shift
    STAND_IN=$settings LD_LIBRARY_PATH=$folder timeout 100 "$BENCH" --serve --workspace 64K "$@"
}
# chains ARENA: the line of the result
chains() {
    request 1024 16 graph strategies=ONESHOT |
        answers "gpus=1 granularity_kib=4 graph_ms=100" --loopback --workspace 32K --arena "$1" |
        grep "^row \|^none "
}
short=$(chains 144K) long=$(chains 2M)
case $long in *" calls=40"*) ;; *) fail "long chains: $long" ;; esac
case $short in *" calls=3"*) ;; *) fail "short chains: $short" ;; esac
echo "$short $long" | tr ' ' '\n' | sed -n 's/^time_us=//p' |
    awk '{ time[NR] = $1 } END { exit !(time[1] < 2 * time[2] && time[2] < 2 * time[1]) }' ||
    fail "the launch of a graph is in the time: $short"
chains 140K >"$WORK/out"
printed out "two chains of calls need [0-9]* KiB, and [0-9]* are free; use a larger --arena"

# The bound of a call on slow links is the data that a strategy has to move over them in one direction: with 2
# ranks, one message for ONESHOT and TWOSHOT, two for ONESHOT_MULTICAST and NVLS_ONESHOT, one and a half for
# NVLS_TWOSHOT, and for NCCL the least of these.
bounds=$(request 64 4 eager | answers "multicast slow_links=60000" |
    sed -n 's/^row .* strategy=\([^ ]*\) .* bound_us=\([^ ]*\) .*/\1 \2/p')
echo "$bounds" | awk '
    { bound[$1] = $2 }
    function is(name, times) { return bound[name] > times * one * 0.99 && bound[name] < times * one * 1.01 }
    END {
        one = bound["ONESHOT"]
        exit !(one > 0 && is("TWOSHOT", 1) && is("ONESHOT_MULTICAST", 2) && is("NVLS_ONESHOT", 2) &&
            is("NVLS_TWOSHOT", 1.5) && is("NCCL", 1))
    }' || fail "bounds of slow links: $bounds"

# ONESHOT_MULTICAST is in the class of numerics of ONESHOT.
request 64 4 eager strategies=ONESHOT,ONESHOT_NATIVE,ONESHOT_MULTICAST |
    answers "multicast gpus=4" --ranks 4 >"$WORK/rows"
# bits_of STRATEGY: of its results.
bits_of() { sed -n "s/^row .* strategy=$1 .* bits=\([0-9a-f]*\) .*/\1/p" "$WORK/rows"; }
bits=$(bits_of ONESHOT_MULTICAST)
{ [ -n "$bits" ] && [ "$bits" = "$(bits_of ONESHOT)" ] && [ "$bits" != "$(bits_of ONESHOT_NATIVE)" ]; } ||
    fail "the bits of ONESHOT_MULTICAST: $bits"

# In cold_graph no call contains the time of a flush, even if the flush of one rank takes longer: the time is
# that of flushes without a duration.
# cold MS_OF_EACH_GPU: the time of a call
cold() {
    request 64 4 cold_graph strategies=ONESHOT | answers "memset_ms=$1" --arena 1M |
        sed -n 's/^row .* time_us=\([^ ]*\) .*/\1/p'
}
even=$(cold 0) uneven=$(cold 1,5)
echo "$even $uneven" | awk '{ exit !(NF == 2 && $2 < 2 * $1 && $1 < 2 * $2) }' ||
    fail "cold_graph: $even us without the time of flushes, $uneven us with uneven flushes"
