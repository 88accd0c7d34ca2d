# Compiles kernels to PTX with nvcc, translates that to C++ and builds kernels.cpp with it. Sourced, with the
# variables of lib_planted.sh, and CXX. 77: there is no nvcc, or it has no such target.
# shellcheck shell=sh
# shellcheck source=tests/bench/cuda/kernels/lib_planted.sh
. "$(dirname "$0")/../kernels/lib_planted.sh"
translator=$SOURCE/tests/stand_ins/ptx
nvcc=$(command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null || true)

# needs_nvcc SM: skips the test if no nvcc compiles for it.
needs_nvcc() {
    if [ -z "$nvcc" ]; then
        echo "skipped: there is no nvcc here"
        exit 77
    elif ! "$nvcc" --list-gpu-arch | grep -qx "compute_$1"; then
        echo "skipped: this nvcc has no sm_$1"
        exit 77
    fi
}

# render_kernels TP: all kernels of a TP size, in WORK/all.cu.
render_kernels() {
    "$GENTABLES" template "$SOURCE/templates/bench/cuda_kernels.cu.tmpl" "tp=$1" threads=1024 \
        --out "$WORK/all.cu"
}

# ptx_inputs CASE [FILE...]: the inputs of the proof; CASE is empty if the script has one proof. FILE: more of
# them.
ptx_inputs() {
    case_of_proof=$1
    shift
    "$nvcc" --version | tail -n 1 >"$WORK/nvcc_version"
    planted_inputs "$CXX" "$case_of_proof" "$@" "$WORK/nvcc_version" "$WORK/all.cu" \
        "$SOURCE"/tests/bench/cuda/ptx/* "$translator"/*
}

# select_kernels CONDITION: prints the part of WORK/all.cu before the first kernel, and each kernel for which
# the condition of awk holds, on its name and its number from 0.
select_kernels() {
    awk "/^KERNEL\\(/ { split(\$0, word, \", \"); name = word[2]; number = count++ }
        count == 0 || ($1)" "$shared/all.cu"
}

# compile_ptx SM FILE: FILE.ptx from FILE.cu, with the options of the bench.
compile_ptx() {
    "$nvcc" -std=c++17 -O3 -I "$SOURCE/bench/cuda/kernels" -I "$SOURCE/bench" "-arch=compute_$1" -ptx \
        -o "$2.ptx" "$2.cu"
}

# compile_translated FILE FLAG...: FILE.o from FILE.ptx. No flag of the compiler may change results. Compiling
# takes longer than running, and -Og takes half as long as -O1.
compile_translated() {
    translated=$1
    shift
    "$GENTABLES" lua "$translator/translate.lua" "$translated.ptx" >"$translated.cpp" &&
        "$CXX" -std=c++17 -Og -ffp-contract=off -w "$@" -I "$translator" -I "$SOURCE/tests/stand_ins/engine" \
            -I "$SOURCE/bench/cuda/kernels" -I "$SOURCE/bench" -I "$GENERATED" -c "$translated.cpp" \
            -o "$translated.o"
}

# build_ptx_shared FLAG...: compiles what all programs share; -DCASES_TP=N is the TP size.
build_ptx_shared() {
    cases=
    build_shared "$CXX" "$@"
    compile "$shared/exchange.o" exchange "$CXX" -DIN_PTX "$@"
    for unit in ../ptx/ptx_cases ../ptx/ptx_ranges; do
        compile "$shared/$(basename "$unit").o" "$unit" "$CXX" -I "$translator" "$@"
    done
}

# build_model: compiles the memory of model.h, for build_ptx.
build_model() { compile "$shared/model.o" "../../../stand_ins/ptx/model" "$CXX"; }

# build_ptx FILE MEMORY TEST: the program FILE from FILE.ptx. MEMORY is plain, or model: that of model.h. TEST
# is kernels or exchange.
build_ptx() {
    program=$1 flag=
    objects="$shared/$3.o $shared/ptx_cases.o $shared/ptx_ranges.o $shared/element.o"
    if [ "$2" = model ]; then flag=-DPTX_MODEL objects="$objects $shared/model.o"; fi
    # shellcheck disable=SC2086
    compile_translated "$program" $flag && "$CXX" "$program.o" $objects "$ENGINE" -lm -o "$program"
}
