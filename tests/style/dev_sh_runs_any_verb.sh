#!/bin/sh
# dev_sh_runs_any_verb.sh BUILD_TREE: cmake/dev.sh VERB on simulated machines: it installs the packages that
# the verb needs and lacks, configures once, builds the verb's programs, and runs it in the folder of the
# caller, with nothing but its output on stdout. An unknown name ends in one line, before installing.
work=$GENTABLES_WORK/dev_sh_verbs
. "$(dirname -- "$0")/lib_machine.sh"
tree=$work/tree

# begin: a checkout without a build tree, on a machine with all that a build needs. The stand-in of cmake
# makes what a build would make; apt-get installs gnuplot and mpirun.
begin() {
    machine grep mkdir chmod touch ln
    mkdir -p "$tree/cmake" "$tree/generator" "$work/caller"
    cp "$dev" "$tree/cmake"
    cp "$GENTABLES_SOURCE/CMakePresets.json" "$tree"
    cp -R "$GENTABLES_SOURCE/generator/verbs" "$tree/generator"
    for tool in cc gcc c++ pkg-config mpicc; do ln -s /bin/true "$work/bin/$tool"; done
    stand_in id "echo 0"
    stand_in apt-get "case \$* in
        *gnuplot*) ln -s mpicc '$work/bin/gnuplot' ;;
        *openmpi*) ln -s mpicc '$work/bin/mpirun' ;;
    esac"
    stand_in ninja "[ \"\$5\" != absent ]" # ninja -C build -t query TARGET
    stand_in cmake "case \$1 in
        --version) echo cmake version 3.25.1 ;;
        --preset) mkdir -p build/bin && touch build/build.ninja && echo configured ;;
        --build) printf '#!/bin/sh\necho \"\$PWD: \$*\"\n' >build/bin/gentables &&
            chmod +x build/bin/gentables && echo built ;;
    esac"
}

# runs CODE ARGUMENT...: expects this exit code of dev.sh; its stdout is in $output, its stderr beside it.
runs() {
    wanted=$1
    shift
    : >"$work/log"
    code=0
    (cd "$work/caller" && PATH=$work/bin sh "$tree/cmake/dev.sh" "$@") >"$output" 2>"$work/stderr" || code=$?
    [ "$code" -eq "$wanted" ] || die "exit code $code where $wanted was expected: $(cat "$work/stderr")"
}

lacks() {
    if grep -F -- "$1" "$work/log"; then die "should not have been called: $1"; fi
}

# Nothing is installed, configured or built for an unknown name.
begin
runs 2 plott
[ "$(wc -l <"$work/stderr")" -eq 1 ] || die "an unknown name should end in one line"
has "gentables: no verb or target 'plott'; verbs: check compare" "$work/stderr"
has "targets: gen-tables" "$work/stderr"
lacks apt-get
lacks cmake

# The first call installs, configures and builds; the next one only builds.
begin
runs 0 plot --data-dir "two words"
[ "$(cat "$output")" = "$work/caller: plot --data-dir two words" ] || die "the verb should have run, alone"
has "--no-install-recommends gnuplot-nox" "$work/log"
has "cmake --preset default" "$work/log"
has "cmake --build build --target gentables gentables-modules" "$work/log"
lacks openmpi
lacks gentables-bench
runs 0 plot
lacks apt-get
lacks "cmake --preset"

# A verb with more needs configures again, and builds its bench; that for GPUs where there is one.
runs 0 tune
has "--no-install-recommends openmpi-bin" "$work/log"
has "cmake --preset default" "$work/log"
has "--target gentables gentables-modules gentables-bench" "$work/log"
lacks gentables-bench-cuda
stand_in nvidia-smi
runs 0 tune
has "gentables-bench gentables-bench-cuda" "$work/log"

# A target installs what it needs, and no more; GENTABLES_ARCH chooses its table.
begin
GENTABLES_ARCH=sm90
export GENTABLES_ARCH
runs 0 gen-tables
has "cmake --preset default -DGENTABLES_ARCH=sm90" "$work/log"
has "--no-install-recommends openmpi-bin" "$work/log"
has "cmake --build build --target gen-tables" "$work/log"
lacks gnuplot

# Every name with needs is a verb or a target, and every target that is listed exists.
sed -n '/^uses()/,/^targets=/s/^    \([a-z| -]*\)) *.*/\1/p' "$dev" | tr -d ' ' | tr '|' '\n' |
    sort -u >"$work/names"
[ "$(wc -l <"$work/names")" -gt 10 ] || die "the names of dev.sh are not found"
listed=$(sed -n 's/^targets="\(\$targets \)*\(.*\)"$/\2/p' "$dev" | paste -sd ' ')
while read -r name; do
    case " $listed " in *" $name "*) continue ;; esac
    [ -f "$GENTABLES_SOURCE/generator/verbs/$name.lua" ] || die "neither verb nor target: $name"
done <"$work/names"
for target in $listed; do
    ninja -C "$1" -t query "$target" >"$output" 2>&1 || [ "$target" = clean ] || die "no target $target"
done
