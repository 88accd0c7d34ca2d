#!/bin/sh
# By nvcc's assembler, no kernel spills registers, and none needs more of them than a multiprocessor has for
# one block: TP 8, with the fewest registers for a thread, and the helpers for SM 80, 90 and 100; TP 16 for SM
# 90 and 100. With GENTABLES_NIGHTLY=1 these for every SM version of the preset cuda-all that this nvcc
# supports, and the other TP sizes for SM 90. The sources differ before SM 90 and from it on, so they are
# compiled for these two, and assembled for each version. 77: there is no nvcc.
set -eu
nvcc=$(command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null || true)
if [ -z "$nvcc" ]; then
    echo "skipped: there is no nvcc here"
    exit 77
fi
rm -rf "$WORK"
mkdir -p "$WORK"

is_nightly() { [ "${GENTABLES_NIGHTLY:-}" = 1 ]; }

versions="80 90 100"
if is_nightly; then
    versions=$(sed -n 's/.*"GENTABLES_CUDA_ARCHITECTURES": "\([0-9;]*\)".*/\1/p' "$SOURCE/CMakePresets.json" |
        tr ';' ' ')
fi
if [ -z "$versions" ]; then
    echo "FAILED: the preset cuda-all names no SM versions"
    exit 1
fi
known=$("$nvcc" --list-gpu-code)
before=''
after=''
for version in $versions; do
    if ! echo "$known" | grep -qx "sm_$version"; then
        echo "sm_$version: left out, because this nvcc does not support it"
    elif [ "$version" -lt 90 ]; then
        before=$before${before:+,}sm_$version
    else
        after=$after${after:+,}sm_$version
    fi
done

if [ -z "$before" ] || [ -z "$after" ]; then
    echo "FAILED: this nvcc supports none of the SM versions before 90, or none from 90 on"
    exit 1
fi

# judge THREADS NAME: reads the output of the assembler; prints the largest number of registers, and fails if
# a kernel spills or does not fit.
judge() {
    awk -v threads="$1" -v name="$2" '
        /Compiling entry function/ { split($0, part, "\047"); kernel = part[2]; version = part[4] }
        /bytes spill stores/ && !/ 0 bytes spill stores, 0 bytes spill loads/ {
            print "FAILED: " version ": " kernel " spills:" $0
            bad = 1
        }
        match($0, /Used [0-9]+ registers/) {
            registers = substr($0, RSTART + 5, RLENGTH - 15) + 0
            kernels[version]++
            if (registers > most[version]) most[version] = registers
            if (registers * threads > 65536) {
                print "FAILED: " version ": " kernel ": " registers " registers in " threads " threads"
                bad = 1
            }
        }
        END {
            for (version in kernels)
                printf "%s, %s: %d kernels, at most %d registers in %d threads\n", name, version,
                    kernels[version], most[version], threads
            exit bad || version == ""
        }'
}

# fits NAME THREADS OPTION...: the kernels of NAME.cu, for the SM versions of these options.
fits() {
    name=$1 threads=$2
    shift 2
    "$nvcc" -std=c++17 -O3 "$@" -I "$SOURCE/bench/cuda/kernels" \
        -I "$SOURCE/bench" -Xptxas -v -fatbin -o "$WORK/$name.fatbin" \
        "$WORK/$name.cu" >"$WORK/$name.log" 2>&1 || { cat "$WORK/$name.log" && exit 1; }
    judge "$threads" "$name" <"$WORK/$name.log"
}

# fits_all NAME THREADS: for every SM version.
fits_all() {
    fits "$1" "$2" ${before:+-gencode "arch=compute_80,code=[$before]"} \
        ${after:+-gencode "arch=compute_90,code=[$after]"}
}

threads_of() { if [ "$1" -gt 8 ]; then echo 512; else echo 1024; fi; }
"$GENTABLES" template "$SOURCE/templates/bench/cuda_helpers.cu.tmpl" --out "$WORK/helpers.cu"
for tp in 2 3 4 8 16; do
    "$GENTABLES" template "$SOURCE/templates/bench/cuda_kernels.cu.tmpl" tp=$tp threads="$(threads_of $tp)" \
        --out "$WORK/tp$tp.cu"
done
# shellcheck source=tests/proof.sh
. "$SOURCE/tests/proof.sh"
proof_inputs "$WORK"/*.cu "$SOURCE"/bench/cuda/kernels/*.h "$SOURCE"/bench/fusions/*.h -- \
    "$("$nvcc" --version | tail -n 1)"

# fits_each TP...: one after the other.
fits_each() {
    for tp in "$@"; do
        case $tp in
        helpers) fits_all helpers 1024 ;;
        8 | 16) fits_all "tp$tp" "$(threads_of "$tp")" ;;
        16_after) fits tp16 512 -gencode "arch=compute_90,code=[$after]" ;;
        *) fits "tp$tp" "$(threads_of "$tp")" -arch=sm_90 ;;
        esac
    done
}
# Two at a time; both halves take about as long.
if is_nightly; then
    fits_each 16 4 &
    half=$!
    fits_each 8 helpers 3 2 &
else
    fits_each 16_after helpers &
    half=$!
    fits_each 8 &
fi
other=$!
failed=0
for each in "$half" "$other"; do wait "$each" || failed=1; done
[ "$failed" = 0 ] || exit 1
proof_holds
