#!/bin/sh
# gentables doctor: each part with its state, the command that installs what is missing, the reason why a part
# does not work, and exit code 2 if this machine cannot be measured. Its packages are those of cmake/dev.sh.
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
chmod +x "$WORK/tools/cc"
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

# What is installed and was only not built is not installed again.
printf '#!/bin/sh\n' >"$WORK/tools/mpicc"
chmod +x "$WORK/tools/mpicc"
ends_with 2 doctor
has '^  sudo dnf install openmpi ' "$stdout"
has '^then build gentables again:' "$stdout"
ends_with 2 doctor --json
has '"is_installed": true' "$stdout"
printf '#!/bin/sh\n' >"$WORK/tools/mpirun"
chmod +x "$WORK/tools/mpirun"
ends_with 2 doctor
if grep 'install .*openmpi' "$stdout"; then die "it installs what is there"; fi
mv "$WORK/tools/dnf" "$WORK/dnf"
ends_with 2 doctor
mv "$WORK/dnf" "$WORK/tools/dnf"
has '^to have the missing parts, build it again:$' "$stdout"
has '^  cmake --preset default' "$stdout"
rm "$WORK/tools/mpicc"

# For an installed program, advice needs no clone.
mkdir "$WORK/home"
cp -r "$SOURCE/generator" "$WORK/home"
GENTABLES_HOME=$WORK/home
export GENTABLES_HOME
ends_with 2 doctor
has '^then build gentables again from its sources, and install it$' "$stdout"
if grep -q 'cmake' "$stdout"; then die "it needs a clone"; fi
mkdir "$WORK/empty"
cd "$WORK/empty"
ends_in_one_line 2 "no GPU to measure: .*; .*gentables sweep $WORK/home//*tables/host/spec.lua --out data" \
    "$GENTABLES" generate --sm_version 89
cat >"$WORK/refine.lua" <<'END'
local command = require("surroundings.next_commands").refine("a/spec.lua", "b")
print(require("rows.provenance").budget_words({ { tp = 2, nodes = 1, budget_s = 9 } }, command))
END
succeeds lua "$WORK/refine.lua"
has 'measures nothing; `.*gentables sweep a/spec.lua --out b --refine` continues on them[.]$' "$stdout"
cd "$WORK"
unset GENTABLES_HOME

# With a bench and mpirun the main job runs.
printf '#!/bin/sh\n' | tee "$WORK/tools/mpirun" >"$WORK/program/bin/gentables-bench"
chmod +x "$WORK/tools/mpirun" "$WORK/program/bin/gentables-bench"
ends_with 0 doctor
has '^this machine can be measured$' "$stdout"
ends_with 0 doctor --json
has '"can_measure": true' "$stdout"
has '"command": "sudo dnf install ' "$stdout"

# Parts that are there, and do not work.
printf '#!/bin/sh\n[ "$1" = --version ] || { echo "no daemon" >&2; exit 1; }\n' >"$WORK/tools/mpirun"
printf '#!/bin/sh\nexit 3\n' | tee "$WORK/tools/cc" >"$WORK/program/bin/gentables-bench-cuda"
printf '#!/bin/sh\necho nothing\n' >"$WORK/tools/gnuplot"
chmod +x "$WORK/tools/gnuplot" "$WORK/program/bin/gentables-bench-cuda"
ends_with 2 doctor
has '^broken   mpirun ' "$stdout"
has '^ {9}no daemon$' "$stdout"
has '^broken   C compiler ' "$stdout"
has '^broken   gentables-bench-cuda ' "$stdout"
has '^ {9}exit code 3$' "$stdout"
has '^broken   gnuplot ' "$stdout"
has '^this machine cannot be measured without a working mpirun; tables' "$stdout"
if grep -E 'dnf install .*openmpi( |$)' "$stdout"; then die "it installs what is there"; fi
ends_with 2 doctor --json
has '"problem": "no daemon"' "$stdout"
has '"can_measure": false' "$stdout"
printf '#!/bin/sh\n' | tee "$WORK/tools/cc" >"$WORK/tools/mpirun"

# A module that cannot be loaded is missing, with its package.
rm "$WORK/program/lib"
cp -RL "$(dirname "$(readlink "$WORK/program/share")")/lib" "$WORK/program/lib"
rm -f "$WORK/program/lib/gentables/core/sqlite.so"
ends_with 0 doctor
has '^missing  SQLite ' "$stdout"
has 'sudo dnf install .*sqlite-devel' "$stdout"
printf '#!/bin/sh\n[ "$*" = "--exists sqlite3" ]\n' >"$WORK/tools/pkg-config"
chmod +x "$WORK/tools/pkg-config"
ends_with 0 doctor
if grep 'install .*sqlite' "$stdout"; then die "it installs what is there"; fi
