#!/bin/sh
# gentables detect: the GPUs and MPI that the benches report, the archs that can be measured, and the reason
# for the others.
. "$SOURCE/tests/lib.sh"
. "$SOURCE/tests/unit/surroundings/lib.sh"
program_with "$WORK/program/bin"

# No bench at all.
succeeds detect
has '^arch       host$' "$stdout"
has '^MPI        none: no bench .*install Open MPI' "$stdout"
has '^GPUs       none: no bench .*-cuda: .*CUDA and NCCL are found: build again' "$stdout"
has '^not        host: no bench' "$stdout"
if grep -q '^measurable' "$stdout"; then die "measurable without a bench"; fi

# Without a launcher no bench helps.
printf '#!/bin/sh\necho gentables-bench protocol=3 bench=1 isa=portable library=Open MPI v4.1.4\n' \
    >"$WORK/program/bin/gentables-bench"
chmod +x "$WORK/program/bin/gentables-bench"
mkdir "$WORK/empty"
PATH=$WORK/empty "$GENTABLES" detect >"$stdout"
has '^not        host: no mpirun ' "$stdout"
PATH=$WORK/empty GENTABLES_LAUNCHER='srun -n {ranks}' "$GENTABLES" detect >"$stdout"
has '^measurable host' "$stdout"
rm "$WORK/program/bin/gentables-bench"

# The bench's GPUs: many, one.
gpus 8 90
succeeds detect
has '^arch       sm90$' "$stdout"
has '^GPUs       8 x NVIDIA H100 \(sm90\); CUDA 13.0 with driver 13.0 and NCCL 2.28.9$' "$stdout"
has '^measurable sm90, such as: gentables generate ' "$stdout"
gpus 1 90
succeeds detect --json
has '"arch": "sm90-loopback"' "$stdout"
has '"reason": "one GPU; two or more are required"' "$stdout"
succeeds detect
command=$(sed -n 's/^measurable sm90-loopback, such as: gentables sweep //p' "$stdout")
spec=${command%% *}
[ "$command" = "$spec --arch sm90-loopback --out sm90-loopback" ] || die "no command for one GPU: $command"
cmp "$spec" "$SOURCE/tables/gpu/spec.lua" || die "detect names another spec than that of tables/gpu"
# It is a spec, with this arch, too: only the stand-in of a bench ends the sweep.
# shellcheck disable=SC2086 # the command's words
ends_with 1 "$GENTABLES" sweep $command
if grep -q 'spec.lua' "$stderr"; then die "the spec is wrong: $(cat "$stderr")"; fi

# Without a bench for GPUs, nvidia-smi names them.
rm "$WORK/program/bin/gentables-bench-cuda"
mkdir "$WORK/tools"
printf '#!/bin/sh\necho "9.0, NVIDIA H200"\n' >"$WORK/tools/nvidia-smi"
chmod +x "$WORK/tools/nvidia-smi"
PATH=$WORK/tools:$PATH succeeds detect
has '^GPUs       1 x NVIDIA H200 \(sm90\)$' "$stdout"
has '^not        sm90: no bench' "$stdout"

# A bench of another program.
printf '#!/bin/sh\necho other\n' >"$WORK/program/bin/gentables-bench-cuda"
chmod +x "$WORK/program/bin/gentables-bench-cuda"
succeeds detect
has "^GPUs       none: .*prints no bench's line" "$stdout"
rejects 'takes no argument' detect here
