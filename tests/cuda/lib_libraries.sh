# What tests of workloads on GPUs share: which stand-ins there are. Sourced, behind tests/workload/lib.sh;
# STAND_INS and STAND_INS_PROCESSES, the folders of all of them, come from CMakeLists.txt.
# shellcheck shell=sh

# only NAME...: these libraries alone; in place of the others are files that cannot be loaded.
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

# routed_workload: experts, so that tokens go by all_to_all; its file's name is printed.
routed_workload() {
    workload routed <<'END'
return { name = "routed", tokens = 12,
  layers = {
    { name = "e", experts = { load = { 1, 2 } }, gemms = { { name = "up", n = 9, k = 7 },
      { name = "down", n = 7, k = 9 } } },
    { name = "a", gemms = { { name = "g", n = 12, k = 9 } } } } }
END
}
