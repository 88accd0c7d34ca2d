#!/bin/sh
# cmake/dev.sh deps on machines simulated by links and stand-ins in PATH: it calls no package manager if
# nothing is missing, calls apt-get or dnf for missing packages, and ends with a list if it cannot install
# them.
set -eu
dev=$(cd "$(dirname -- "$0")/../.." && pwd)/cmake/dev.sh
work=$GENTABLES_WORK/dev_sh
output=$work/output

die() {
    cat "$output"
    echo "FAILED: $1"
    exit 1
}

# machine TOOL...: a PATH with these and the programs that the script itself uses. `log` records the calls of
# stand-ins.
machine() {
    rm -rf "$work"
    mkdir -p "$work/bin"
    for tool in sh cat dirname env id sed tr "$@"; do
        ln -s "$(command -v "$tool")" "$work/bin/$tool"
    done
}

# stand_in NAME [COMMAND]: a program that records its arguments, and then runs COMMAND. A link of that name is
# removed first: writing through it would overwrite the machine's own program.
stand_in() {
    rm -f "$work/bin/$1"
    printf '#!/bin/sh\necho "%s $*" >>"%s/log"\n%s\n' "$1" "$work" "${2:-}" >"$work/bin/$1"
    chmod +x "$work/bin/$1"
}

# ends CODE: expects this exit code of `dev.sh deps build`.
ends() {
    code=0
    (cd / && PATH=$work/bin sh "$dev" deps build) >"$output" 2>&1 || code=$?
    [ "$code" -eq "$1" ] || die "exit code $code where $1 was expected"
}

has() {
    grep -qF -- "$1" "$2" || die "$2 should hold: $1"
}

set -- cc gcc c++ cmake mpicc mpirun pkg-config # the tools of a build, but for ninja
for tool in "$@" ninja; do
    if ! command -v "$tool" >/dev/null; then
        echo "skipped: there is no $tool here"
        exit 77
    fi
done

machine "$@" ninja
stand_in apt-get "exit 100"
ends 0
if [ -e "$work/log" ]; then die "apt-get was called with nothing missing"; fi

machine "$@"
stand_in id "echo 0"
stand_in apt-get "case \$* in *ninja-build*) ln -s /bin/true '$work/bin/ninja' ;; esac"
/bin/ln -s "$(command -v ln)" "$work/bin/ln"
ends 0
has "apt-get -qq update" "$work/log"
has "--no-install-recommends ninja-build" "$work/log"
if grep -q libsimdjson-dev "$work/log"; then die "what is there was installed again"; fi

machine "$@"
stand_in dnf
ends 2
has "ninja-build" "$work/log"
has "gentables: still missing: ninja" "$output"

machine "$@"
ends 2
has "gentables: neither apt-get nor dnf found; install these, by their Debian names: ninja-build" "$output"

machine "$@"
stand_in id "echo 1000"
stand_in apt-get
ends 2
has "there is neither root nor sudo; run as root: apt-get" "$output"

machine "$@"
stand_in id "echo 1000"
stand_in apt-get
stand_in sudo
ends 2
has "sudo apt-get -qq update" "$work/log"
