#!/bin/sh
# gen-tables measures this machine's GPUs if there are several of one kind and their bench is built, else the
# host. The configuration prints the option for the other one, and the spec has the TP sizes that fit.
. "$SOURCE/tests/lib.sh"

# decides HAS_BENCH CAPABILITIES [CODE [ARCH]]: the decision with the GPUs of an nvidia-smi that prints these
# and ends with this code, in $WORK/arch; the messages in $WORK/out; and $WORK/spec.lua, for this arch (sm90).
decides() {
    mkdir -p "$WORK/bin"
    {
        echo '#!/bin/sh'
        printf "printf '%%s\\\\n' %s\\n" "$2"
        echo "exit ${3:-0}"
    } >"$WORK/bin/nvidia-smi"
    chmod +x "$WORK/bin/nvidia-smi"
    cat >"$WORK/decide.cmake" <<END
include("$SOURCE/cmake/default_arch.cmake")
gentables_default_arch(arch $1)
file(WRITE "$WORK/arch" "\${arch}\n")
gentables_gpu_spec(${4:-sm90} "$WORK/spec.lua")
END
    PATH=$WORK/bin:$PATH cmake -P "$WORK/decide.cmake" >"$WORK/out" 2>&1 || die "$(cat "$WORK/out")"
}

# arch_is ARCH PATTERN: what was decided, and the message.
arch_is() {
    [ "$(cat "$WORK/arch")" = "$1" ] || die "decided for $(cat "$WORK/arch"), not $1"
    has "$2" "$WORK/out"
}

decides ON "9.0 9.0 9.0 9.0"
arch_is sm90 'GPUs: 4 \(sm90\); gen-tables measures them; -DGENTABLES_ARCH=host measures the host'
has '^  arch = "sm90",$' "$WORK/spec.lua"
has '^  tp = \{ 2, 4 \},$' "$WORK/spec.lua"
decides ON "10.3 10.3" 0 sm103-loopback
arch_is sm103 'GPUs: 2 \(sm103\)'
has '^  arch = "sm103-loopback",$' "$WORK/spec.lua"
has '^  tp = \{ 2, 4, 8 \},$' "$WORK/spec.lua"
decides OFF "9.0 9.0"
arch_is host 'measures the host: the bench for GPUs is built only where nvcc'
decides ON 9.0
arch_is host '-DGENTABLES_ARCH=sm90-loopback measures the GPU'
decides ON "8.0 9.0"
arch_is host 'GPUs: 2 \(sm80, sm90\); gen-tables measures the host; -DGENTABLES_ARCH with one of these'

# No driver: no message.
decides ON "'NVIDIA-SMI 580.65 has failed'" 9
[ "$(cat "$WORK/arch")" = host ] || die "GPUs without a driver"
[ ! -s "$WORK/out" ] || die "a message without GPUs: $(cat "$WORK/out")"

# The spec that is shipped differs from that for an arch in the arch alone.
has '^  tp = \{ 2, 4, 8 \},$' "$WORK/spec.lua"
sed 's/arch = "sm90"/arch = "gpu"/' "$WORK/spec.lua" | cmp - "$SOURCE/tables/gpu/spec.lua" ||
    die "another spec"
