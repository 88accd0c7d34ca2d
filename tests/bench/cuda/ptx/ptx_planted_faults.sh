#!/bin/sh
# Each fault that faults.lua plants in the PTX of a kernel is caught: by the translator, by results, by a
# check while the kernel runs, or, where only the order of memory is at fault, by the weak memory of model.h.
# Without a fault nothing is caught, with and without that memory. A slow proof.
. "$(dirname "$0")/lib_ptx.sh"
sm=90
faults=$SOURCE/tests/bench/cuda/ptx/faults.lua
needs_nvcc $sm
render_kernels 2
ptx_inputs ""
build_ptx_shared -DCASES_TP=2 -DWITHOUT_GIVING_UP
build_model

# The kernels of all faults, each in a file of its own.
"$GENTABLES" lua "$faults" >"$shared/faults"
kernels=$(cut -d ' ' -f 2 "$shared/faults" | sort -u)
# shellcheck disable=SC2086
select_kernels "\"$(printf ' gentables_%s_tp2 ' $kernels)\" ~ \" \" name \" \"" >"$shared/kernels.cu"
compile_ptx $sm "$shared/kernels"
for kernel in $kernels; do
    awk -v kernel=" gentables_${kernel}_tp2(" '/^\.visible/ { is_other = index($0, kernel) == 0 } !is_other' \
        "$shared/kernels.ptx" >"$shared/$kernel.ptx"
done

# is_right KERNEL
is_right() {
    for memory in plain model; do
        cp "$shared/$1.ptx" "$WORK/$memory.ptx"
        build_ptx "$WORK/$memory" $memory kernels
        if ! passes "$WORK/$memory" ""; then
            echo "FAILED: $1, $memory: something was caught where nothing is wrong" && cat "$WORK/output"
            exit 1
        fi
    done
}

# is_caught FAULT
is_caught() {
    kernel=$(sed -n "s/^$1 //p" "$shared/faults")
    "$GENTABLES" lua "$faults" "$1" "$shared/$kernel.ptx" >"$WORK/faulty.ptx" 2>"$WORK/reason" ||
        { cat "$WORK/reason" && exit 1; }
    read -r memory reason <"$WORK/reason"
    if build_ptx "$WORK/faulty" "$memory" kernels 2>"$WORK/output"; then
        fails "$WORK/faulty" "$reason" || reason=
    else
        grep -q "$reason" "$WORK/output" || reason=
    fi
    if [ -z "$reason" ]; then
        echo "FAILED: $1 was not caught: $(cat "$WORK/reason")" && tail -n 20 "$WORK/output"
        exit 1
    fi
    echo "caught in $kernel, $memory: $1"
}

# check NAME: a kernel or a fault.
check() {
    case $1 in
    *[a-z]*) is_right "$1" ;;
    *) is_caught "$1" ;;
    esac
}
# shellcheck disable=SC2046,SC2086
two_at_a_time check $kernels $(cut -d ' ' -f 1 "$shared/faults")
proof_holds
