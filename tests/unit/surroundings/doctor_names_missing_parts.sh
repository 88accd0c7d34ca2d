#!/bin/sh
# gentables doctor: each part with its state, the command that installs what is missing, and exit code 2 if
# this machine cannot be measured. Its packages are those of cmake/dev.sh.
. "$SOURCE/tests/lib.sh"
. "$SOURCE/tests/unit/surroundings/lib.sh"

# Each package is one that cmake/dev.sh installs.
cat >"$WORK/packages.lua" <<'END'
for _, part in ipairs(require("surroundings.parts").list) do
  if part.debian then print(part.debian .. " " .. part.fedora) end
end
END
"$GENTABLES" lua "$WORK/packages.lua" >"$WORK/packages"
[ "$(wc -l <"$WORK/packages")" -gt 5 ] || die "no packages"
while read -r debian fedora; do
    grep -Eq " $debian +$fedora\$" "$SOURCE/cmake/dev.sh" || die "dev.sh has no $debian"
done <"$WORK/packages"

# A program without benches, among few other programs.
program_with "$WORK/program/bin"
mkdir "$WORK/tools"
printf '#!/bin/sh\n' | tee "$WORK/tools/apt-get" >"$WORK/tools/cc"
doctor() { env PATH="$WORK/tools" "$GENTABLES" doctor "$@"; }
ends_with 2 doctor
has '^missing  gentables-bench ' "$stdout"
has '^missing  mpirun ' "$stdout"
has '^found    C compiler ' "$stdout"
has '^  sudo apt-get install libopenmpi-dev openmpi-bin .*gnuplot-nox' "$stdout"
has '^then build gentables again:' "$stdout"
has '^this machine cannot be measured without gentables-bench and mpirun; tables' "$stdout"
mv "$WORK/tools/apt-get" "$WORK/tools/dnf"
ends_with 2 doctor
has '^  sudo dnf install openmpi-devel openmpi .*gnuplot' "$stdout"

# With a bench and mpirun the main job runs.
printf '#!/bin/sh\n' | tee "$WORK/tools/mpirun" >"$WORK/program/bin/gentables-bench"
ends_with 0 doctor
has '^this machine can be measured$' "$stdout"
ends_with 0 doctor --json
has '"can_measure": true' "$stdout"
has '"command": "sudo dnf install ' "$stdout"

# A module that cannot be loaded is missing, with its package.
rm "$WORK/program/lib"
cp -RL "$(dirname "$(readlink "$WORK/program/share")")/lib" "$WORK/program/lib"
rm -f "$WORK/program/lib/gentables/core/sqlite.so"
ends_with 0 doctor
has '^missing  SQLite ' "$stdout"
has 'sudo dnf install .*sqlite-devel' "$stdout"
