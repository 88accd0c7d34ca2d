#!/bin/sh
# Traces of workloads on GPUs by CUPTI's records, with stand-ins: they have each kernel as CUPTI records it;
# if some records are missing, kernels are timed by events, or one line reports the loss.
. "$SOURCE/tests/unit/workload/lib.sh"
. "$SOURCE/tests/bench/workload/gpu/lib_libraries.sh"
only cuda cublasLt nccl cupti
odd_workloads 2 13 21
routed=$(routed_workload)

# ---- each kernel, as CUPTI records it ----
gpus real_clock 0 workload run --backend cuda -f "$routed" -p 2 --steps 2 --warm-up 1 \
    --trace "$WORK/c%r.json"
keep_rules "$WORK"/c[01].json
gpus "real_clock cupti_slow_clock=5" 0 workload run --backend cuda -f "$reduced" -p 2 --steps 1 \
    --warm-up 0 --trace "$WORK/slow%r.json"
keep_rules "$WORK"/slow[01].json
grep -q '"clock":"cupti"' "$WORK/c0.json" || die "the trace is not CUPTI's"
grep -q '"name":"stand_in_kernel"' "$WORK/c0.json" || die "a kernel has not CUPTI's name"
# Each kernel is an event of its own, as CUPTI records it, and so is a memset; each event has its op.
gpus "real_clock cupti_split" 0 workload run --backend cuda -f "$reduced" -p 2 --steps 2 --warm-up 1 \
    --trace "$WORK/split%r.json"
split=$WORK/split0.json
keep_rules "$WORK"/split[01].json
grep '"name":"stand_in_kernel"' "$split" |
    grep '"context":1,"grid":\[2,3,1\],"block":\[128,1,1\]' |
    grep -q '"registers per thread":96,"shared memory":4096' ||
    die "a kernel has not CUPTI's grid"
has '"name":"stand_in_reduce".*"grid":\[4,3,1\]' "$split"
has '"cat":"gpu_memset","name":"Memset".*"context":1,"bytes":512' "$split"
[ "$(grep -c '"name":"stand_in_kernel"' "$split")" = "$(grep -c '"name":"stand_in_reduce"' "$split")" ] ||
    die "kernels are lost"
succeeds trace report "$split" --out "$WORK/split" --csv
if grep -q unlinked "$stderr"; then die "a kernel has lost its op"; fi
# The traces have the time of each launch, too: the stand-in's calls take a microsecond.
grep -q '"gentablesLaunch"' "$split" || die "no launch of a further kernel"
if grep '"gentablesLaunch"' "$split" | grep -q '"dur":0\.'; then
    die "a launch of a further kernel has no time"
fi

# ---- late records, and records of an earlier step ----
# traced SETTINGS: expects traces that follow the rules.
traced() {
    gpus "real_clock $1" 0 workload run --backend cuda -f "$reduced" -p 2 --steps 2 --warm-up 1 \
        --trace "$WORK/t%r.json"
    keep_rules "$WORK"/t[01].json
}
kernels() { grep -c '"name":"stand_in_kernel"' "$1"; }
traced ""
all=$(kernels "$WORK/t0.json")
for settings in cupti_late=5 cupti_again; do
    traced "$settings"
    grep -q '"clock":"cupti"' "$WORK/t0.json" || die "$settings: the times are not CUPTI's"
    [ "$(kernels "$WORK/t0.json")" = "$all" ] || die "$settings: other kernels than were run"
done
# The same with a second kernel of a GEMM that already has its first one.
for settings in cupti_second_late=5 cupti_second_held; do
    traced "cupti_split $settings"
    grep -q '"clock":"cupti"' "$WORK/t0.json" || die "$settings: the times are not CUPTI's"
    [ "$(grep -c '"name":"stand_in_reduce"' "$WORK/t0.json")" = "$all" ] ||
        die "$settings: kernels are lost"
done

# If the two clocks are read at different moments, or once badly, the step runs again on all ranks.
for settings in cupti_off=500 cupti_jump=60 "cupti_rank=1 cupti_jump=60"; do
    traced "$settings"
    grep -q '"clock":"cupti"' "$WORK/t1.json" || die "$settings: the times are not CUPTI's"
    [ "$(kernels "$WORK/t0.json")" = "$all" ] || die "$settings: other kernels than were run"
done

# ---- lost records: events on all ranks, reported in the log, the page and the trace ----
by_events() {
    settings=$1
    text=$2
    traced "$settings"
    grep -q "traces are timed by events: $text" "$stdout" || die "$settings: no reason for events"
    grep -q '"clock":"event"' "$WORK/t0.json" || die "$settings: rank 0 has not the clock of all"
    grep -q '"clock":"event"' "$WORK/t1.json" || die "$settings: rank 1 has not the clock of all"
    if grep -q '"name":"stand_in_kernel"' "$WORK"/t[01].json; then
        die "$settings: kernels of CUPTI in a trace by events"
    fi
}
lost='CUPTI lost records: of 24 of 24 GEMMs, 2 of 2 collectives, first of a1.g'
for settings in cupti_loses=1 cupti_loses_kernels cupti_untimed=1 cupti_late=1000; do
    by_events "$settings" "$lost"
done
by_events "cupti_split cupti_loses_kernels" \
    'CUPTI lost records: of 24 of 24 GEMMs, 0 of 2 collectives, first of a1.g'
by_events "cupti_split cupti_second_late=1000" "$lost"
outside='has records with times outside the step: of'
by_events cupti_past "CUPTI $outside 24 of 24 GEMMs, 2 of 2 collectives, first of a1.g"
by_events cupti_off=5000 "CUPTI $outside"
by_events "cupti_rank=1 cupti_loses=3" 'rank 1: CUPTI lost records: of 22 of 24 GEMMs'
by_events "cupti_dropped=3" 'CUPTI dropped 7 records'
by_events cupti_no_clock 'CUPTI does not return the time'
by_events "cupti_refuses=5" 'CUPTI does not start'
by_events cupti_unreadable 'CUPTI gave records that cannot be read'
gpus "real_clock cupti_loses=1" 0 workload sweep --backend cuda -f "$reduced" -p 2 -c 28 -t 256 --steps 2 \
    --warm-up 0 -o "$WORK/sweep_20260102_030405"
swept=$WORK/sweep_20260102_030405
has "timed by events: CUPTI lost" "$swept/256thread/nccl_28channels/run_output.log"
succeeds workload report "$swept" --csv --without plots,comparisons,merge
grep -q 'timed by events: CUPTI lost' "$swept/workload.html" || die "the page lacks the reason for events"
grep -q 'Times are of events on the GPUs' "$swept/workload.html" || die "the page has another clock"

# A loss after the measurement cannot be repaired: the trace has no invented times.
fails() {
    gpus "real_clock $1" 1 workload run --backend cuda -f "$reduced" -p 2 --steps 2 --warm-up 0
    one_line "$2"
}
fails cupti_loses=60 'traced step: CUPTI lost records: of [0-9]* of 24 GEMMs, 2 of 2 collectives. first of a'
fails cupti_rank=1\ cupti_untimed=75 'rank 1: traced step: CUPTI lost records: of [0-9]* of 24 GEMMs'
fails cupti_jumps=60 "traced step: CUPTI $outside"
fails cupti_dropped=7 'step: CUPTI dropped 7 records'

# ---- a CUPTI that cannot be used ----
gpus cupti_old 0 workload run --backend cuda -f "$reduced" -p 2 --steps 1 --warm-up 0
has 'traces are timed by events: CUPTI is too old: version 1,' "$stdout"
gpus cupti_held 0 workload run --backend cuda -f "$reduced" -p 2 --steps 1 --warm-up 0
has 'traces are timed by events: CUPTI is in use by another' "$stdout"

# ---- all ranks on one GPU, by our own kernels: one thread launches for all ----
only cuda cublasLt cupti
own() {
    gpus "gpus=1 real_clock $1" "$2" workload run --backend cuda --transport builtin -f "$3" -p 2 -c 2 -t 64 \
        --steps 2 --warm-up 1 --trace "$WORK/own%r.json"
}
own cupti_split 0 "$reduced"
own "" 0 "$routed"
keep_rules "$WORK"/own[01].json
own cupti_again 0 "$reduced"
keep_rules "$WORK"/own[01].json
own cupti_jump=110 0 "$reduced"
keep_rules "$WORK"/own[01].json
for rank in 0 1; do
    grep -q '"clock":"cupti"' "$WORK/own$rank.json" || die "$rank: the trace is not CUPTI's"
    # 24 GEMMs and 2 collectives in each of 2 steps; those of the other rank are not in this rank's trace.
    [ "$(grep -c '"cat":"kernel"' "$WORK/own$rank.json")" = 52 ] || die "$rank: other kernels than were run"
    place='"context":1,"grid":\[2,3,1\]'
    [ "$(grep -c "\"name\":\"stand_in_kernel\".*$place" "$WORK/own$rank.json")" = 48 ] ||
        die "$rank: a GEMM has not CUPTI's grid"
    [ "$(grep -c "\"name\":\"ncclGentables_TWOSHOT_f32\".*$place" "$WORK/own$rank.json")" = 4 ] ||
        die "$rank: a collective has not CUPTI's grid"
done
own cupti_loses=1 0 "$reduced"
has 'stay free for GEMMs; traces are timed by events: CUPTI lost records: of 48 of 48 GEMMs, 2 of 2' "$stdout"
keep_rules "$WORK"/own[01].json
for rank in 0 1; do
    grep -q '"clock":"event"' "$WORK/own$rank.json" || die "$rank: the trace is not of events"
done
own cupti_loses=110 1 "$reduced"
one_line 'CUPTI lost records: of [0-9]* of 48 GEMMs'
own cupti_jumps=110 1 "$reduced"
one_line "CUPTI $outside [0-9]* of 48 GEMMs"
only cuda cublasLt
own "" 0 "$reduced"
has 'traces are timed by events: no CUPTI' "$stdout"
