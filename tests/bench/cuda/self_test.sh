#!/bin/sh
# The self-test prints a line for each of its stages. A stage that fails, hangs or dies ends alone, with the
# reason and the options to run the bench without it; the exit code is 1. Without a GPU it is 2.
. "$(dirname "$0")/lib_stand_in.sh"
only cuda

# self_test CODE SETTINGS OPTION...: it has this exit code.
self_test() {
    wanted_status=$1 settings=$2 status=0
    shift 2
    STAND_IN=$settings LD_LIBRARY_PATH=$folder timeout 300 "$BENCH" "$@" >"$WORK/out" 2>"$WORK/err" ||
        status=$?
    [ "$status" = "$wanted_status" ] || fail "$settings, $*: exit code $status"
}

# prints PATTERN WHAT
prints() {
    grep -qE "$1" "$WORK/out" || fail "$2: not printed: $1"
}

# fails_at STAGE PATTERN SETTINGS OPTION...: it alone fails, for this reason.
fails_at() {
    stage=$1 wanted=$2
    shift 2
    settings=$1
    shift
    self_test 1 "$settings" --timeout 20 "$@" "--self-test=$stage"
    prints "^FAILED  $stage: .*$wanted" "$stage, $settings"
    prints "^FAILED: 1 of [12] stages failed" "$stage, $settings"
}

# switches_off OPTION STAGE PATTERN SETTINGS...: the same, and the bench runs without it with this option.
switches_off() {
    option=$1
    shift
    fails_at "$@"
    prints "^off     $stage; to run the bench without it: $option" "$stage, $settings"
}

# ends_without STAGE PATTERN SETTINGS: it is skipped, for this reason.
ends_without() {
    self_test 0 "$3" --timeout 60 "--self-test=$1"
    prints "^skipped $1: $2" "$1, $3"
}

# ---- nothing fails ---------------------------------------------------------------------------------------

# all_right SETTINGS STAGE...: these stages go well, all others are skipped.
all_right() {
    settings=$1
    shift
    self_test 0 "$settings" --self-test --timeout 60
    for stage in "$@"; do prints "^ok      $stage: " "$settings"; done
    prints "^passed: 0 of 14 stages failed" "$settings"
    [ "$(grep -c "^ok  " "$WORK/out")" = $# ] || fail "$settings: others are not skipped"
}
# With one GPU: the stages that are different there.
for stage in barriers joint file processes; do
    self_test 0 "gpus=1" --timeout 60 "--self-test=$stage"
    case $stage in
    barriers) prints "^ok      barriers: 10000 barriers of 2 ranks \(loopback\), .* us each" "one GPU" ;;
    joint) prints "^ok      joint: .* are right \(2 ranks, loopback\)" "one GPU" ;;
    file) prints "^ok      file: .* on one GPU" "one GPU" ;;
    processes) prints "^ok      processes: 22 results .* in 4 cells are right \(2 ranks, file\)" "one GPU" ;;
    esac
done
# With few multiprocessors, kernels have fewer blocks, each of which handles more rows.
all_right "gpus=2 multiprocessors=2 has_fabric fabric multicast" context code timers barriers messages joint \
    plain programmatic graph fabric file ipc processes multicast
prints "^ok      barriers: 10000 barriers of 2 ranks \(process\), .* us each" "two GPUs"
for handles in fabric file ipc; do
    prints "^ok      $handles: .* on two GPUs \($handles\)" "two GPUs"
done
prints "^ok      multicast: exact sums are exact; of random sums [1-9][0-9]* are rounded .*; \
the largest error is 0\.[67]" "multicast"
ends_without file "the GPU or the driver offers none" "no_files"
ends_without programmatic "sm_80 has none" "sm=80"
ends_without multicast "the hardware has no multicast" "gpus=2"

# Kernels that the driver compiles at load, from newer PTX, are as good as code.
self_test 0 "sm=120 ptx=90" --timeout 60 --self-test=context
prints "^ok      context: .*kernels of sm_120 from PTX 9.0, .*; the driver compiled them: build for sm_120$" \
    "kernels from PTX"

# ---- the kernels' code -----------------------------------------------------------------------------------

# A script in place of cuobjdump prints kernels with the instructions that they need, but for $LACKS. The same
# instructions, with more around them, are in what cuobjdump 12.4 prints of code for sm_80, sm_89 and sm_90.
mkdir -p "$WORK/bin" "$WORK/none"
cat >"$WORK/bin/cuobjdump" <<'END'
#!/bin/sh
[ "$*" = "-sass -arch sm_90 $4" ] && [ -s "$4" ] && [ -z "${UNREADABLE:-}" ] || exit 1
for kernel in oneshot_bf16_fp32_none twoshot_bf16_fp32_none nvls_oneshot_bf16_fp32_none exchange; do
    printf '\t\tFunction : gentables_%s_tp2\n\t.headerflags\t@"EF_CUDA_SM90"\n' $kernel
    for instruction in "LDG.E.STRONG.SYS R4, [R2]" MEMBAR.ALL.SYS ACQBULK PREEXIT "LDGMC.E.ADD R4, [R2]"; do
        case "$kernel $instruction " in
        ${LACKS:-none} | exchange*PREEXIT* | oneshot*MEMBAR* | [!n]*LDGMC*) ;;
        *) printf '        /*0010*/                   %s ;\n' "$instruction" ;;
        esac
    done
done
END
chmod +x "$WORK/bin/cuobjdump"
# code PATTERN SETTINGS NAME=VALUE...: what the stage prints of right kernels.
code() {
    wanted=$1 settings=$2
    shift 2
    for assignment in "$@"; do export "${assignment?}"; done
    self_test 0 "$settings" --timeout 60 --self-test=code
    prints "^ok      code: [1-9][0-9]+ kernels of TP 2, at most 40 registers, $wanted\$" "code"
}
path=$PATH
absent="instructions are not checked: no cuobjdump in PATH or CUDA_HOME"
code "none with local memory; ($absent|[1-9][0-9]+ have the instructions that they need)" "" \
    CUDA_HOME="$WORK/none"
code "none with local memory; 4 have the instructions that they need" "" CUDA_HOME="$WORK"
code "[1-9][0-9]+ with local memory, which is slow; 4 have the instructions that they need" "local_bytes=8" \
    PATH="$WORK/bin:$path"
code "none with local memory; instructions are not checked: the driver compiled them at load" "sm=120 ptx=90"
code "none with local memory; instructions are not checked: those of sm_130 are not known" "sm=130"
code "none with local memory; instructions are not checked: cuobjdump cannot read them" "" UNREADABLE=1
unset UNREADABLE
fails_at code "gentables_oneshot_.*_tp2: a block has at most 512 threads, and needs 1024" "most_threads=512"
for lacks in "oneshot*STRONG*:accesses that other GPUs see" "twoshot*MEMBAR*:a fence before flags" \
    "exchange*ACQBULK*:the wait for the launch ahead" "nvls*LDGMC*:sums in the switch" \
    "oneshot*PREEXIT*:the start of the next launch"; do
    LACKS=${lacks%%:*}
    export LACKS
    fails_at code "the machine code of gentables_${LACKS%%\**}_?.* lacks ${lacks#*:} " ""
done
unset LACKS
PATH=$path

# ---- a stage fails ------------------------------------------------------------------------------------

fails_at context "loading kernels of TP 2: an error of the stand-in" "no_binary"
fails_at context "they are not for sm_90" "binary=80"
fails_at context "from PTX 8.0, .*; the driver compiled them; they have no programmatic launches" "ptx=80"
fails_at barriers "no peer access between the GPUs" "no_peers"
switches_off "--streams" joint "TWOSHOT, NONE, bfloat16, 4 x 256: wrong result: it changes after the call" \
    "gpus=1 late_on=twoshot"
switches_off "--mode eager" graph "ONESHOT, NONE, bfloat16, 4 x 256: wrong result" "gpus=1 lazy_graph=9"
switches_off "--no-programmatic" programmatic "a launch: " "no_programmatic"
switches_off "--no-multicast" multicast "binding memory to a multicast team" "multicast team_fails"
fails_at fabric "fabric, importing a peer's memory" "has_fabric fabric own_fabric"
export OMPI_COMM_WORLD_RANK=0 # the process that the stand-in's settings name
switches_off "--handles ipc" file "byte 0 that rank [01] wrote is 0 on rank [01], not" "private_rank=0"
OMPI_COMM_WORLD_SIZE=2
export OMPI_COMM_WORLD_SIZE
fails_at barriers "ended by signal 9 .*, at: 10000 barriers of 2 ranks" "dead_rank=0"
unset OMPI_COMM_WORLD_RANK OMPI_COMM_WORLD_SIZE

# A GPU that hangs: its flags, if its kernels leave their waits.
hangs() {
    fails_at joint "ONESHOT: rank 0's GPU hung for 5 s; its kernels gave up" "gpus=1 held_blocks=4" \
        --timeout 5
    prints "^        rank 1: barrier [0-9]+; flags of the ranks: [0-9]+ [0-9]+" "kernels that gave up"
    prints "^        rank 1: oneshot, [0-9]+ launches" "kernels that gave up"
}
hangs_for_good() {
    fails_at barriers "rank [01]'s GPU hung for 5 s, and did not give up" "hang" --timeout 5
    prints "^        rank 0: its flags cannot be read" "kernels that do not give up"
}
# A process that does not even notice its own deadlines.
stands_still() {
    OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2
    export OMPI_COMM_WORLD_RANK OMPI_COMM_WORLD_SIZE
    fails_at barriers "no end within [0-9.]+ s, at: 10000 barriers of 2 ranks" "stopped_rank=0" --timeout 5
}
beside hangs hangs
beside stands_still stands_still
beside hangs_for_good hangs_for_good
all_beside

# ---- wrong use -------------------------------------------------------------------------------------------

# refused SETTINGS TEXT OPTION...
refused() {
    wanted=$2
    self_test 2 "$1" "$3"
    grep -qF "gentables-bench: $wanted" "$WORK/err" || fail "not printed: $wanted"
    [ ! -s "$WORK/out" ] || fail "$wanted: prints stages"
}
refused "gpus=0" "no GPU: the driver sees none" --self-test
refused "" "--self-test: no stage graphs; stages: context code timers" --self-test=graphs
only
refused "" "no CUDA driver (libcuda.so.1)" --self-test

# ---- the options that it names ---------------------------------------------------------------------------

only cuda
all_timed ONESHOT bench "no_programmatic multicast" --no-programmatic --no-multicast -b 512 -e 512 \
    --hidden-size 64 --samples 2 --budget 0.03 --strategies ONESHOT,NVLS_ONESHOT
grep "^# .* NVLS_ONESHOT  *" "$WORK/out" | grep -q "not used with --no-multicast" ||
    fail "--no-multicast: NVLS is not refused"
# Kernels from older PTX cannot wait for the launch ahead, so there is no programmatic launch.
all_timed ONESHOT bench "no_programmatic ptx=80" -b 512 -e 512 --hidden-size 64 --samples 2 --budget 0.03 \
    --strategies ONESHOT
self_test 2 "" --handles fax --self-test
