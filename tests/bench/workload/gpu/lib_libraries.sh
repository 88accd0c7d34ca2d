# Shared by tests of workloads on GPUs: selects stand-ins. Sourced, after unit/workload/lib.sh; STAND_INS and
# STAND_INS_PROCESSES, the folders of all of them, come from CMakeLists.txt.
# shellcheck shell=sh

# only NAME...: uses these libraries; in place of the others are files that cannot be loaded.
folder=$WORK/libraries
only() {
    rm -rf "$folder"
    mkdir -p "$folder"
    for file in "$STAND_INS"/* "$STAND_INS_PROCESSES"/*; do : >"$folder/$(basename "$file")"; done
    for major in 12 13; do : >"$folder/libcupti.so.$major"; done
    for name in "$@"; do
        cp "$STAND_INS/lib$name".so.* "$folder"
    done
    case " $* " in
    *" nccl "*) cp "$STAND_INS_PROCESSES"/libnccl.so.2 "$folder" ;;
    esac
}

# gpus SETTINGS CODE COMMAND...: gentables with these stand-ins.
gpus() {
    settings=$1
    wanted_code=$2
    shift 2
    ends_with "$wanted_code" env STAND_IN="$settings" LD_LIBRARY_PATH="$folder" "$GENTABLES" "$@"
}

# routed_workload: a workload with experts, so that tokens are sent by all_to_all; prints its file's name.
routed_workload() {
    workload routed <<'END'
return { name = "routed", tokens = 12,
  layers = {
    { name = "e", experts = { load = { 1, 2 } }, gemms = { { name = "up", n = 9, k = 7 },
      { name = "down", n = 7, k = 9 } } },
    { name = "a", gemms = { { name = "g", n = 12, k = 9 } } } } }
END
}

# typed_workloads: $WORK/TYPE.lua, with exact sums of types that cannot represent -2 .. 2 in every element,
# and $WORK/spread_TYPE.lua, for the smaller types; $WORK/bucketed.lua has no experts and so no all_to_all of
# tokens. After odd_workloads.
# shellcheck disable=SC2154
typed_workloads() {
    for dtype in bfloat16 float16; do
        workload "$dtype" >"$WORK/typed" <<END
return { name = "long", dtype = { host = "float32", cuda = "$dtype" }, tokens = 3000, micro_batches = 2,
  layers = { { name = "a", gemms = { { name = "g", n = 13, k = 21 }, { name = "h", n = 5, k = 3 } } },
    { name = "e", experts = { load = { 1, 2 } }, gemms = { { name = "up", n = 3, k = 5 } } } },
  gradients = { collective = "allreduce", bucket_bytes = 500 } }
END
        sed "s/^return {/&dtype = '$dtype',/" "$spread" >"$WORK/spread_$dtype.lua"
    done
    sed '/name = "e"/d; s/{ name = "h", n = 5, k = 3 } } },/{ name = "h", n = 5, k = 3 } } } },/' \
        "$WORK/bfloat16.lua" >"$WORK/bucketed.lua"
}
