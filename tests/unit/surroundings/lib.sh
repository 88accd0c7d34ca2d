# Shared by tests of a command's surroundings. Sourced, after tests/lib.sh.
# shellcheck shell=sh

# program_with BIN BENCH...: a copy of the program in BIN/gentables, beside only these benches of its folder.
program_with() {
    bin=$1
    shift
    mkdir -p "$bin"
    cp "$GENTABLES" "$bin/gentables"
    for part in share lib; do ln -s "$(dirname "$GENTABLES")/../$part" "$bin/../$part"; done
    for bench; do ln -s "$(dirname "$GENTABLES")/$bench" "$bin/$bench"; done
    GENTABLES=$bin/gentables
}

# gpus COUNT SM: the bench for GPUs beside the program reports these.
gpus() {
    cat >"$(dirname "$GENTABLES")/gentables-bench-cuda" <<END
#!/bin/sh
library='CUDA 13.0 with driver 13.0 and NCCL 2.28.9 on $1 x NVIDIA H100'
echo "gentables-bench protocol=3 bench=0123456789abcdef isa=sm_$2 compiler=none library=\$library"
END
    chmod +x "$(dirname "$GENTABLES")/gentables-bench-cuda"
}
