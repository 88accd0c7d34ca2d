#!/bin/sh
# The whole way of a GPU bench, with kernels that run on a CPU: ranks on a GPU each, and all on one in one
# launch or in a launch each; eager, cold, and as chains of a graph; every strategy and epilogue verified;
# devices told; and rows that gentables sweeps and makes a table of, which only says loopback is a real one
# where it is asked to.
. "$(dirname "$0")/lib_stand_in.sh"
only cuda nccl nvidia-ml

small="-b 512 -e 512 --hidden-size 64 --samples 4 --budget 0.2 --emulate-nvfp4"
own="ONESHOT TWOSHOT ONESHOT_NATIVE TWOSHOT_NATIVE"
for fusion in NONE RESIDUAL_RMS_NORM RESIDUAL_RMS_NORM_QUANT_FP8 RESIDUAL_RMS_NORM_QUANT_NVFP4; do
    separate=$([ "$fusion" = NONE ] || echo NCCL_UNFUSED)
    # shellcheck disable=SC2086
    bench "" $small --fusion "$fusion"
    # shellcheck disable=SC2086
    all_timed "$fusion, a GPU each" $own NCCL NCCL_SYMMETRIC $separate
done
# shellcheck disable=SC2086
{
    bench "gpus=1" $small --loopback --fusion RESIDUAL_RMS_NORM
    all_timed "one launch for all" $own
    bench "gpus=1" $small --streams
    all_timed "a launch each" $own
    bench "" $small --mode graph --fusion RESIDUAL_RMS_NORM_QUANT_FP8
    all_timed "graph" $own NCCL NCCL_UNFUSED
    bench "gpus=1" $small --mode graph --loopback
    all_timed "graph, one launch for all" $own
    # A launch each, of as many blocks as there is room for: of all ranks, and twice, for the next launch is
    # there before the last one has left. Where a GPU holds fewer than it says, that is told.
    many="-b 4096 -e 4096 --hidden-size 64 --samples 4 --budget 0.2"
    bench "gpus=1" $many --streams --mode graph
    all_timed "graph, a launch each" $own
    for strategy in ONESHOT TWOSHOT; do
        bench "gpus=1 boasts" $many --streams --mode graph --strategies $strategy
        [ "$status" = 1 ] || fail "$strategy, more blocks than a GPU holds: exit code $status"
        grep -q "^stand-in: 32 blocks wait for each other on a GPU that holds 16 at once" "$WORK/err" ||
            fail "$strategy, more blocks than a GPU holds: not told"
    done
    bench "" $small --mode cold --dtype float32
    all_timed "cold" $own NCCL
    bench "" $small --mode cold_graph
    all_timed "cold graph" $own NCCL
    bench "gpus=1" $small --mode cold_graph --loopback
    all_timed "cold graph, one launch for all" $own
    bench "slow_host" $small --strategies ONESHOT --samples 2
    all_timed "a host that is later than the GPUs' delay" ONESHOT
    for after in 0 20; do # when it is first called; when it has been verified
        bench "slow_on=oneshot slow_after=$after" $small --strategies ONESHOT,TWOSHOT
        all_timed "a host that is always late for another" TWOSHOT
        grep "^# .* ONESHOT  *" "$WORK/out" |
            grep -qE "a host took longer than its GPU's delay of [0-9]+ us, 12 times in a row" ||
            fail "a host that is always late after $after calls: not said"
    done
    for mode in graph cold_graph; do
        bench "gpus=1 no_slope" $small --mode $mode --loopback --strategies ONESHOT
        grep "^# .* ONESHOT  *" "$WORK/out" |
            grep -qE "a chain of [0-9]+ calls took no longer than one of [0-9]+, 12 times in a row" ||
            fail "a longer chain that takes no longer, $mode: not said"
    done
    # All calls of both chains are checked: the short one's here, of 8 calls, leaves out its last.
    bench "gpus=1 lazy_graph=9" $small --mode graph --loopback --strategies ONESHOT
    grep "^# .* ONESHOT  *" "$WORK/out" | grep -q "wrong result in" || fail "a wrong short chain is not seen"
    for fusion in RESIDUAL_RMS_NORM RESIDUAL_RMS_NORM_QUANT_FP8 RESIDUAL_RMS_NORM_QUANT_NVFP4; do
        bench "gpus=1" $small --loopback --mode graph --fusion $fusion \
            --strategies ONESHOT,ONESHOT_EPILOGUE,ONESHOT_UNFUSED
        all_timed "$fusion in several kernels" ONESHOT ONESHOT_EPILOGUE ONESHOT_UNFUSED
    done
    bench "" $small --strategies NCCL_RING_LL_4CH,NCCL_TREE_SIMPLE
    all_timed "chosen algorithms" NCCL_RING_LL_4CH NCCL_TREE_SIMPLE
    bench "multicast" $small --fusion RESIDUAL_RMS_NORM --strategies NVLS_ONESHOT,NVLS_TWOSHOT
    all_timed "the switch" NVLS_ONESHOT NVLS_TWOSHOT
    bench "" $small -n 3
    all_timed "calls in a row" ONESHOT NCCL
    bench "" $small -n 3 -w 1 -c 1 -G 1 -J "$WORK/graph.json"
    all_timed "a graph, as nccl-tests asks for it" ONESHOT NCCL
    grep -q "nGpus 1 .* graph: 1\$" "$WORK/out" || fail "the table does not say that it is of a graph"
    grep -q '"nccl_version":"[0-9.]*".*"ngpus":1,.*"graph":1,.*"device_info":"stand-in GPU"' \
        "$WORK/graph.json" || fail "the JSON does not say what it is of: $(head -c 800 "$WORK/graph.json")"
    bench "gpus=1" --ranks 1 $small
    all_timed "one rank" NCCL NCCL_SYMMETRIC
    # Data sets then begin anywhere, which our own kernels do not take.
    bench "" $small --hidden-size 100 -b 400 -e 400
    all_timed "rows that are no multiple of 16 bytes" NCCL
    grep -q "ONESHOT .*hidden size x element size is no multiple of 16 bytes" "$WORK/out" ||
        fail "rows that are no multiple of 16 bytes: not said"
    bench "" $small --hidden-size 1 -b 2 -e 2
    all_timed "an element" NCCL
}

# The other ops, by NCCL's calls.
for op in allgather reducescatter alltoall alltoallv broadcast; do
    # shellcheck disable=SC2086
    bench "" $small --op $op --dtype float32 --strategies NCCL
    [ "$status" = 0 ] || fail "$op: exit code $status"
    grep -q "^  *[0-9].* float32  *[a-z]*  *NCCL  *$above_0 .* 0\$" "$WORK/out" ||
        fail "$op: NCCL has no time"
    grep -q "^# Out of bounds values : 0 OK" "$WORK/out" || fail "$op: something is wrong"
done
# shellcheck disable=SC2086
bench "" $small --op alltoall --mode graph --strategies NCCL
[ "$status" = 0 ] || fail "alltoall in a graph: exit code $status"
# Of uneven results fewer fit on one rank; chains are as long on all.
bench "" --workspace 64K --arena 512K -b 64K -e 64K --samples 2 --budget 0.01 --dtype float32 --op alltoallv \
    --splits 3:1 --mode graph --strategies NCCL --timeout 20
[ "$status" = 0 ] || fail "uneven results in a graph: exit code $status: $(cat "$WORK/out" "$WORK/err")"

# Ranks without a share neither get nor are sent anything, and results of nothing have room.
for splits in 0:1 3:0; do
    for mode in eager graph; do
        # shellcheck disable=SC2086
        bench "" $small --op alltoallv --splits $splits --mode $mode --strategies NCCL
        [ "$status" = 0 ] || fail "splits $splits, $mode: exit code $status"
        grep -q "^  *[0-9].* NCCL  *$above_0 .* 0\$" "$WORK/out" || fail "splits $splits, $mode: no time"
        grep -q "^# Out of bounds values : 0 OK" "$WORK/out" || fail "splits $splits: something is wrong"
    done
done

# What a launch of a graph costs is in no time, however few calls there is room for: three at least, of
# messages of 256 KiB. With less there is none.
asked="measure id=1 op=allreduce dtype=bfloat16 fusion=NONE hidden_size=1024 num_tokens=128 mode=graph"
asked="$asked min_samples=2 max_samples=2 budget_us=10000 precision=0.5 seed=1 strategies=ONESHOT"
# chains ARENA: the line that answers
chains() {
    printf '%s\nquit\n' "$asked" |
        STAND_IN="gpus=1 granularity_kib=4 graph_ms=100" LD_LIBRARY_PATH=$folder timeout 100 "$BENCH" \
            --serve --loopback --workspace 256K --arena "$1" | grep "^row \|^none "
}
short=$(chains 1040K) long=$(chains 16M)
case $long in *" calls=40"*) ;; *) fail "long chains: $long" ;; esac
case $short in *" calls=3"*) ;; *) fail "short chains: $short" ;; esac
echo "$short $long" | tr ' ' '\n' | sed -n 's/^time_us=//p' |
    awk '{ time[NR] = $1 } END { exit !(time[1] < 2 * time[2] && time[2] < 2 * time[1]) }' ||
    fail "the launch of a graph is in the time: $short"
chains 1000K | grep -q "two chains of calls need [0-9]* KiB, above the [0-9]* there are; a larger --arena" ||
    fail "no room for two chains of calls: not said"

# The bound of a call on slow links is what each strategy has to send over them: of 2 ranks ONESHOT and
# TWOSHOT a message, by the switch NVLS_ONESHOT two and NVLS_TWOSHOT one and a half; NCCL may be as good as
# the best.
asked="measure id=1 op=allreduce dtype=bfloat16 fusion=NONE hidden_size=64 num_tokens=4 mode=eager"
asked="$asked min_samples=2 max_samples=2 budget_us=10000 precision=0.5 seed=1"
slow="multicast slow_links=60000"
bounds=$(printf '%s\nquit\n' "$asked" |
    STAND_IN=$slow LD_LIBRARY_PATH=$folder timeout 100 "$BENCH" --serve --workspace 64K |
    sed -n 's/^row .* strategy=\([^ ]*\) .* bound_us=\([^ ]*\) .*/\1 \2/p')
echo "$bounds" | awk '
    { bound[$1] = $2 }
    function is(name, times) { return bound[name] > times * one * 0.99 && bound[name] < times * one * 1.01 }
    END {
        one = bound["ONESHOT"]
        exit !(one > 0 && is("TWOSHOT", 1) && is("NVLS_ONESHOT", 2) && is("NVLS_TWOSHOT", 1.5) &&
            is("NCCL", 1))
    }' || fail "bounds of slow links: $bounds"

# gentables tune on GPUs: ops by bytes, rows of this SM version, and a table of them.
STAND_IN="" LD_LIBRARY_PATH=$folder "$GENTABLES" tune --backend cuda --bench "$BENCH" --fresh --samples 3 \
    --op allreduce,allgather,reducescatter,alltoallv,broadcast --splits 3:1 --sizes 512:4K:8 --launches 2 \
    --cache "$WORK/tune.json" --out "$WORK/tuned" >"$WORK/out" 2>"$WORK/err" || fail "tune"
grep -q "^alltoallv, TP 2, bfloat16, splits 3:1" "$WORK/out" || fail "what tune says"
grep -q "^2,bfloat16,4096,,,NCCL,NONE,allgather," "$WORK/tuned/benchmark.tp2.sm90.csv" || fail "rows of tune"
"$GENTABLES" generate --data-dir "$WORK/tuned" --arch sm90 --formats c,table,report >"$WORK/out" \
    2>"$WORK/err" || fail "a table of what tune measured"
grep -q "GENTABLES_SM90_OP_ALLGATHER" "$WORK/tuned/allreduce_table.h" || fail "the C header"
if STAND_IN="hang" LD_LIBRARY_PATH=$folder "$GENTABLES" tune --backend cuda --bench "$BENCH" --fresh \
    --op allgather --sizes 512 --timeout 5 --cache "$WORK/tune.json" >"$WORK/out" 2>"$WORK/err"; then
    fail "a GPU that hangs"
fi
grep -q "every op takes its default, NCCL" "$WORK/err" || fail "the default of a GPU"
STAND_IN="" LD_LIBRARY_PATH=$folder "$GENTABLES" tune --backend cuda --bench "$BENCH" --samples 3 \
    --op alltoallv --splits 0:1 --sizes 4K --cache "$WORK/tune.json" --json >"$WORK/out" 2>"$WORK/err" ||
    fail "tune of a rank without a share"
grep -q '"splits": "0:1"' "$WORK/out" || fail "tune of a rank without a share has no cell"
grep -q '"strategy": "NCCL"' "$WORK/out" || fail "tune of a rank without a share has no time"

printf 'quit\n' | STAND_IN="" LD_LIBRARY_PATH=$folder "$BENCH" --serve --workspace 64K \
    >"$WORK/out" 2>"$WORK/err" || fail "serving"
grep -q "^hello .*isa=sm_90 .*library=CUDA .* driver 999.1 for .* NCCL .* on 2 x stand-in GPU" "$WORK/out" ||
    fail "hello"
grep -q "^device rank=1 gpu=1 bus=0000:01:00.0 sm=90 .*clock_mhz=1980 .*throttle=0x4 nvlinks=4 \
pcie=4x8 pcie_most=5x16 " "$WORK/out" || fail "devices"

cat >"$WORK/spec.lua" <<'END'
return { arch = "gpu-loopback", tp = { 2 }, hidden_sizes = { 64 }, num_tokens = { 1, 4 },
  fusions = { "NONE" }, strategies = { "ONESHOT", "TWOSHOT", "NCCL" },
  limits = { min_samples = 3, max_samples = 4, cell_us = 100000, message_bytes = 65536, launches = 1 },
  table = { mode = "graph" } }
END
sweep() {
    STAND_IN="gpus=1" LD_LIBRARY_PATH=$folder "$GENTABLES" sweep "$WORK/spec.lua" --out "$WORK" \
        --bench "$BENCH" "$@" >"$WORK/out" 2>"$WORK/err"
}
sweep || fail "a sweep"
rows=$WORK/benchmark.tp2.sm90-loopback.csv
grep -q "floor (us),calls\$" "$rows" || fail "the floor is not in the rows"
grep -q ",ONESHOT,NONE,allreduce,.*,graph,fp32,loopback,.*,$above_0,40\$" "$rows" || fail "the rows"
grep -q '"sm": *"90"' "$WORK/benchmark.tp2.sm90-loopback.json" || fail "the provenance does not know the GPU"
grep -q '"throttle_seen": *"0x44"' "$WORK/benchmark.tp2.sm90-loopback.json" ||
    fail "the provenance does not know that the GPU was hot"
grep -q '"least_clock_mhz": *"1200"' "$WORK/benchmark.tp2.sm90-loopback.json" ||
    fail "the provenance does not know the lowest clock"
grep -q "duplicate GPU" "$WORK/benchmark.tp2.sm90-loopback.json" || fail "why NCCL has no time"
# A kernel that hangs costs its strategy the time, and no other one; the sweep goes on, and says why.
if STAND_IN="gpus=1 hang_on=twoshot" LD_LIBRARY_PATH=$folder timeout 300 "$GENTABLES" sweep "$WORK/spec.lua" \
    --out "$WORK/hang" --bench "$BENCH" --patience 12 >"$WORK/out" 2>"$WORK/err"; then
    fail "a sweep with a hang ends as if there was none"
fi
for tokens in 1 4; do
    grep -q ",$tokens,64,ONESHOT," "$WORK/hang/benchmark.tp2.sm90-loopback.csv" ||
        fail "who does not hang has no row of $tokens tokens"
done
grep -q "GPU hung .*; TWOSHOT stays without a time" "$WORK/err" || fail "who hung is not told"
grep -A1 '"reason": ".*GPU hung' "$WORK/hang/benchmark.tp2.sm90-loopback.json" | grep -q TWOSHOT ||
    fail "the row does not say that it hung"
# A TP size for which there are too few GPUs has no rows, and costs the others nothing.
sed 's/gpu-loopback/gpu/; s/tp = { 2 }/tp = { 2, 4 }/' "$WORK/spec.lua" >"$WORK/two.lua"
if STAND_IN="gpus=2" LD_LIBRARY_PATH=$folder "$GENTABLES" sweep "$WORK/two.lua" --out "$WORK/two" \
    --bench "$BENCH" >"$WORK/out" 2>"$WORK/err"; then
    fail "a sweep with too few GPUs for a TP size ends as if there were enough"
fi
few="the bench says: 4 ranks need 4 GPUs, and here are 2; --loopback puts all ranks on one"
again="the next sweep tries again, unless --tp has others alone"
[ "$(cat "$WORK/err")" = "gentables: TP 4: $few; $again" ] ||
    fail "too few GPUs for a TP size are not told in one line"
grep -q ",ONESHOT,NONE,allreduce," "$WORK/two/benchmark.tp2.sm90.csv" || fail "the other TP size has no rows"
grep -qF "unavailable: $few" "$WORK/two/benchmark.tp4.sm90.json" || fail "the cells do not say why"
if sweep --arch sm100-loopback; then fail "rows of another SM version"; fi
grep -q "this GPU is sm_90" "$WORK/err" || fail "another SM version is not told"
