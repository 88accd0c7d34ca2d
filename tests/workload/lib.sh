# What the shell tests of workloads share. Sourced; GENTABLES (the program), SOURCE (the source tree) and WORK
# (a folder of this test's own) come from CMakeLists.txt.
# shellcheck shell=sh
# shellcheck source=tests/generator/lib.sh
. "$SOURCE/tests/generator/lib.sh"

# Without OpenBLAS no step can be run here.
needs_blas() {
    code=0
    "$GENTABLES" workload run -f small -p 2 --steps 1 --warm-up 0 >"$stdout" 2>"$stderr" || code=$?
    if grep -q 'no OpenBLAS' "$stderr"; then
        echo "no OpenBLAS here"
        exit 77
    fi
    [ "$code" = 0 ] || die "a small step does not run"
}

# workload NAME: standard input becomes the workload's file, whose name is printed.
workload() {
    cat >"$WORK/$1.lua"
    echo "$WORK/$1.lua"
}

# odd_workloads COPIES N K: $reduced, whose gradients are all-reduced, and $spread, where they are scattered;
# of sizes that nothing divides.
# shellcheck disable=SC2034
odd_workloads() {
    layers="{ { name = 'a', copies = $1,
      gemms = { { name = 'g', n = $2, k = $3 }, { name = 'h', n = 5, k = 3 } } } }"
    reduced=$(workload reduced <<END
return { name = "reduced", tokens = 6, micro_batches = 2, layers = $layers,
  gradients = { collective = "allreduce", bucket_bytes = 1000 } }
END
    )
    spread=$(workload spread <<END
return { name = "spread", tokens = 7, layers = $layers, gradients = { collective = "reduce_scatter" } }
END
    )
}
