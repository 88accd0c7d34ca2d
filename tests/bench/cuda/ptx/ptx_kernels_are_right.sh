#!/bin/sh
# The kernels of one TP size, in the PTX that nvcc compiles for an SM version, have the results of the
# reference, in launches of one rank and of all: sh ptx_kernels_are_right.sh TP SM [FLAG...]. A slow proof.
# Three of them have each TP size and each SM version, the longest of them for every second kernel; the rest
# runs with GENTABLES_NIGHTLY=1.
tp=$1 sm=$2
shift 2
exchange="_(exchange|reduce_scatter)_"
parts="0 1 exchange"
if [ "${GENTABLES_NIGHTLY:-}" != 1 ]; then
    case tp${tp}_sm$sm in
    tp2_sm80 | tp4_sm90) ;;
    tp8_sm100) parts="1 exchange" ;;
    *)
        echo "skipped: runs at night"
        exit 77
        ;;
    esac
fi
. "$(dirname "$0")/lib_ptx.sh"
if [ "$sm" -lt 90 ]; then set -- "$@" -DBEFORE_SM90; fi
needs_nvcc "$sm"
render_kernels "$tp"
ptx_inputs "${tp}_sm$sm"
build_ptx_shared "-DCASES_TP=$tp" "$@"

# is_right PART: the kernels of exchange.cpp; or every second one of kernels.cpp, from number 0 or 1.
is_right() {
    if [ "$1" = exchange ]; then
        test=exchange condition="name ~ /$exchange/"
    else
        test=kernels condition="name !~ /$exchange/ && number % 2 == $1"
    fi
    select_kernels "$condition" >"$WORK/part.cu"
    compile_ptx "$sm" "$WORK/part"
    build_ptx "$WORK/part" plain $test
    "$WORK/part" 0
}
# shellcheck disable=SC2086
two_at_a_time is_right $parts
proof_holds
