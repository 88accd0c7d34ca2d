# Shared by the shell tests of workloads. Sourced; GENTABLES (the program), SOURCE (the source tree) and WORK
# (a folder of this test's own) come from CMakeLists.txt.
# shellcheck shell=sh
. "$SOURCE/tests/lib.sh"

# Hides GPUs from the driver, so that these tests run on the host of any machine.
export CUDA_VISIBLE_DEVICES=""

# Steps need OpenBLAS.
needs_blas() {
    code=0
    "$GENTABLES" workload run -f small -p 2 --steps 1 --warm-up 0 >"$stdout" 2>"$stderr" || code=$?
    if grep -q 'no OpenBLAS' "$stderr"; then skip "no OpenBLAS"; fi
    [ "$code" = 0 ] || die "a small step does not run"
}

# workload NAME: writes standard input to the workload's file; prints its name.
workload() {
    cat >"$WORK/$1.lua"
    echo "$WORK/$1.lua"
}

# mixed_workloads N K: $mixed, with GEMMs of three types, in experts, too, and collectives of the same types;
# and $mixed_spread, the same with weights spread over the ranks.
mixed_workloads() {
    mixed=$(workload mixed <<END
return { name = "mixed", dtype = "bfloat16", tokens = 12, micro_batches = 2,
  layers = { { name = "a", copies = 2, gemms = { { name = "g", n = $1, k = $2 },
      { name = "router", n = 3, k = $1, dtype = "float32" },
      { name = "half", n = 5, k = 7, dtype = "float16" } } },
    { name = "e", experts = { load = { 1, 2 } }, gemms = { { name = "up", n = 3, k = 5, dtype = "float16" },
      { name = "down", n = 5, k = 3 } } } },
  gradients = { collective = "allreduce", bucket_bytes = 200 } }
END
    )
    mixed_spread=$WORK/mixed_spread.lua
    sed 's/"allreduce", bucket_bytes = 200/"reduce_scatter"/' "$mixed" >"$mixed_spread"
}

# traces_have_types N K TRACE...: in traces of $mixed or $mixed_spread, of a step each.
traces_have_types() {
    "$GENTABLES" lua "$SOURCE/tests/unit/workload/check_types.lua" "$@" ||
        die "types are not what they should be"
    shift 2
    keep_rules "$@"
}

# keep_rules TRACE...: traces keep the rules of check_trace.lua.
keep_rules() {
    "$GENTABLES" lua "$SOURCE/tests/unit/workload/check_trace.lua" "$@" || die "these break the rules: $*"
}

# odd_workloads COPIES N K: $reduced, with all-reduced gradients, and $spread, with scattered ones; the sizes
# have few divisors.
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
