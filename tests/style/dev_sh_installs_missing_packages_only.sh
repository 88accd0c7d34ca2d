#!/bin/sh
# cmake/dev.sh deps on machines simulated by links and stand-ins in PATH: it calls no package manager if
# nothing is missing, calls apt-get or dnf for missing packages, and ends with a list if it cannot install
# them.
work=$GENTABLES_WORK/dev_sh
. "$(dirname -- "$0")/lib_machine.sh"

# ends CODE: expects this exit code of `dev.sh deps build`.
ends() {
    code=0
    (cd / && PATH=$work/bin sh "$dev" deps build) >"$output" 2>&1 || code=$?
    [ "$code" -eq "$1" ] || die "exit code $code where $1 was expected"
}

set -- cc gcc c++ cmake mpicc mpirun pkg-config # the tools of a build, but for ninja
needs_tools "$@" ninja

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
