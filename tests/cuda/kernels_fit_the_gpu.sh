#!/bin/sh
# nvcc's assembler on every kernel, for sm_90: none spills registers, and none needs more of them than a
# multiprocessor has for one block. 77: there is no nvcc.
set -eu
nvcc=$(command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null || true)
if [ -z "$nvcc" ]; then
    echo "skipped: there is no nvcc here"
    exit 77
fi
rm -rf "$WORK"
mkdir -p "$WORK"

# judge THREADS: reads what the assembler says; prints the most registers, and fails over what does not fit.
judge() {
    awk -v threads="$1" '
        /Compiling entry function/ { split($0, part, "\047"); kernel = part[2] }
        /bytes spill stores/ && !/ 0 bytes spill stores, 0 bytes spill loads/ {
            print "FAILED: " kernel " spills:" $0
            bad = 1
        }
        match($0, /Used [0-9]+ registers/) {
            registers = substr($0, RSTART + 5, RLENGTH - 15) + 0
            kernels++
            if (registers > most) most = registers
            if (registers * threads > 65536) {
                print "FAILED: " kernel ": " registers " registers in " threads " threads"
                bad = 1
            }
        }
        END {
            printf "%d kernels, at most %d registers in %d threads\n", kernels, most, threads
            exit bad || kernels == 0
        }'
}

# assemble SOURCE-WITHOUT-SUFFIX NAME: what the assembler says is in $WORK/log.
assemble() {
    "$nvcc" -std=c++17 -O3 -arch=sm_90 -I "$SOURCE/bench/cuda" -Xptxas -v -cubin -o "$1.cubin" "$1.cu" \
        >"$WORK/log" 2>&1 || { cat "$WORK/log" && exit 1; }
    printf '%s: ' "$2"
}

"$GENTABLES" template "$SOURCE/templates/bench/cuda_helpers.cu.tmpl" --out "$WORK/helpers.cu"
assemble "$WORK/helpers" helpers
judge 1024 <"$WORK/log"
for tp in 2 3 4 8 16; do
    threads=1024
    if [ "$tp" -gt 8 ]; then threads=512; fi
    "$GENTABLES" template "$SOURCE/templates/bench/cuda_kernels.cu.tmpl" tp=$tp threads=$threads \
        --out "$WORK/tp$tp.cu"
    assemble "$WORK/tp$tp" "TP $tp"
    judge "$threads" <"$WORK/log"
done
