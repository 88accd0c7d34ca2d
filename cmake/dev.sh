#!/bin/sh
# Installs missing packages, configures, builds, and runs a target or a verb of gentables, on any machine.
#
#   sh cmake/dev.sh gen-tables      measures this machine and writes its tables
#   sh cmake/dev.sh plot ...        runs gentables plot in the current folder
#   sh cmake/dev.sh test            builds and runs all tests
#   sh cmake/dev.sh check           builds and runs the tests that concern the files you changed
#
# It installs and builds only what the target or the verb needs and this machine lacks, by sudo if the user is
# not root. The script can be called from any folder. It uses the preset `default`.
set -eu

usage() {
    cat <<'END'
usage: sh cmake/dev.sh TARGET|VERB [ARGUMENT...]
  gen-tables              measure missing rows, write the tables, of GENTABLES_ARCH: host, host-NAME for
                          another machine, sm90... for this machine's GPUs
  test                    build and run all tests; ARGUMENTs go to ctest
  check [FILE...]         style, build and the tests that concern the FILEs (default: the files that git
                          reports as changed); less than a minute in a built tree
  VERB [ARGUMENT...]      gentables VERB in the current folder, such as plot, trace or workload; for the verb
                          check see the target check-tables
  packages                .deb and .tar.gz, in build/packages/
  TARGET                  render-tables, check-tables, refine-tables, report-tables, sweep-tables, all,
                          install, clean; in a built tree any other; ARGUMENTs go to cmake --build
  deps [build|test|all]   only install missing packages (default: all)
END
}

fail() {
    printf 'gentables: %s\n' "$1" >&2
    exit 2
}

# Dependencies: group, how it is found (see `have`), packages of apt and of dnf.
needs() {
    cat <<'END'
build        program:cc           gcc,libc6-dev   gcc
build        program:c++          g++             gcc-c++
build        cmake                cmake           cmake
build        program:ninja        ninja-build     ninja-build
build        program:pkg-config   pkg-config      pkgconf-pkg-config
build        lua                  liblua5.4-dev   lua-devel
build        library:simdjson     libsimdjson-dev simdjson-devel
mpi          program:mpirun       openmpi-bin     openmpi
mpi          mpi                  libopenmpi-dev  openmpi-devel
topology     library:hwloc        libhwloc-dev    hwloc-devel
cards        library:yaml-0.1     libyaml-dev     libyaml-devel
databases    library:sqlite3      libsqlite3-dev  sqlite-devel
workbooks    library:xlsxwriter   libxlsxwriter-dev libxlsxwriter-devel
compressed   library:zlib         zlib1g-dev      zlib-devel
compressed   library:libzstd      libzstd-dev     libzstd-devel
pictures     program:gnuplot      gnuplot-nox     gnuplot
gemms        openblas             libopenblas0-pthread openblas-threads
convolutions onednn               libdnnl-dev     onednn-devel
packages     dpkg                 dpkg-dev        dpkg-dev
packages     program:file         file            file
test         program:git          git             git
test         program:make         make            make
test         program:zstd         zstd            zstd
test         program:sqlite3      sqlite3         sqlite
test         program:python3      python3         python3
test         openpyxl             python3-openpyxl python3-openpyxl
test         torch                python3-torch   python3-torch
test         program:clang        clang           clang
test         tsan                 libclang-rt-14-dev compiler-rt
test         program:clang-format clang-format    clang-tools-extra
test         program:luacheck     lua-check       luacheck
test         luaunit              lua-unit        lua-luaunit
test         library:cmocka       libcmocka-dev   libcmocka-devel
test         program:shellcheck   shellcheck      ShellCheck
test         program:spin         spin            spin
test         program:chromium     chromium        chromium
test         program:ip           iproute2        iproute
test         program:tc           iproute2        iproute-tc
test         program:slurmctld    slurm-wlm       slurm-slurmctld,slurm-slurmd
test         program:munged       munge           munge
END
}

# uses NAME: the groups that a verb or a target needs beside `build`.
uses() {
    case $1 in
    sweep | tune | detect) echo mpi topology databases ;;
    generate) echo topology databases ;;
    workload) echo mpi topology cards compressed workbooks pictures gemms ;;
    replay) echo compressed workbooks gemms convolutions ;;
    trace) echo compressed workbooks databases pictures ;;
    metric) echo compressed databases cards pictures ;;
    plot) echo pictures ;;
    report) echo workbooks ;;
    history) echo databases ;;
    report-tables) echo workbooks pictures ;;
    packages) echo mpi topology cards databases workbooks compressed convolutions packages ;;
    prove | gen-tables | sweep-tables | refine-tables | all | install) echo mpi ;;
    esac
}

# programs_of VERB: the targets that a verb needs beside gentables and its modules, those that exist here.
programs_of() {
    case $1 in
    sweep | generate | tune | detect)
        echo gentables-bench
        if nvidia-smi -L >/dev/null 2>&1; then echo gentables-bench-cuda gentables-bench-cuda-mpi; fi
        ;;
    workload) echo gentables-workload ;;
    replay) echo gentables-replay ;;
    doctor) echo gentables-bench gentables-replay gentables-workload ;;
    esac
}

targets="gen-tables sweep-tables refine-tables render-tables check-tables report-tables packages"
targets="$targets all install clean"

have_cmake() {
    version=$(cmake --version 2>/dev/null | sed -n '1s/^[^0-9]*\([0-9]*\)\.\([0-9]*\).*/\1 * 1000 + \2/p')
    [ $((${version:-0})) -ge 3025 ]
}

have_lua() {
    pkg-config --exists lua5.4 2>/dev/null || pkg-config --exists lua-5.4 2>/dev/null ||
        pkg-config --exists 'lua >= 5.4' 'lua < 5.5' 2>/dev/null
}

have_luaunit() {
    for folder in /usr/share/lua/5.4 /usr/local/share/lua/5.4; do
        if [ -f "$folder/luaunit.lua" ]; then return 0; fi
    done
    return 1
}

# have_python MODULE. Debian's packages are for its own python3, which need not be the first in PATH.
have_python() {
    for python in python3 /usr/bin/python3; do
        if "$python" -c "import $1" >/dev/null 2>&1; then return 0; fi
    done
    return 1
}

# OpenBLAS is loaded at run time by this name; no headers are needed.
have_openblas() {
    for folder in /usr/lib /usr/lib64 /lib /usr/local/lib /usr/lib/*-linux-gnu; do
        for name in libopenblas.so.0 libopenblasp.so.0; do
            if [ -e "$folder/$name" ]; then return 0; fi
        done
    done
    return 1
}

have() {
    case $1 in
    program:*) command -v "${1#program:}" >/dev/null 2>&1 ;;
    library:*) pkg-config --exists "${1#library:}" 2>/dev/null ;;
    cmake) have_cmake ;;
    lua) have_lua ;;
    luaunit) have_luaunit ;;
    tsan) printf 'int main() {}\n' | clang++ -fsanitize=thread -x c++ - -o /dev/null >/dev/null 2>&1 ;;
    openpyxl | torch) have_python "$1" ;;
    openblas) have_openblas ;;
    dpkg) [ ! -e /etc/debian_version ] || command -v dpkg-shlibdeps >/dev/null ;; # for .deb, on Debian only
    onednn) printf '#include <dnnl.h>\n' | cc -E -x c - >/dev/null 2>&1 ;;
    mpi) printf '#include <mpi.h>\n' | mpicc -E -x c - >/dev/null 2>&1 ;;
    esac
}

# missing GROUPS COLUMN: prints column 2 (what), 3 (packages of apt) or 4 (of dnf) of each missing dependency
# of the groups; `all`: of every group.
missing() {
    needs | while read -r group what apt dnf; do
        case " $1 " in *" $group "* | " all ") ;; *) continue ;; esac
        if have "$what"; then continue; fi
        case $2 in
        2) printf '%s ' "${what#*:}" ;;
        3) printf '%s ' "$apt" ;;
        4) printf '%s ' "$dnf" ;;
        esac
    done | tr ',' ' '
}

as_root() {
    if [ "$(id -u)" -eq 0 ]; then
        "$@"
    elif command -v sudo >/dev/null 2>&1; then
        sudo "$@"
    else
        fail "packages are missing, and there is neither root nor sudo; run as root: $*"
    fi
}

# On Fedora MPI is not in PATH; `module load` adds it.
find_mpi() {
    if ! command -v mpicc >/dev/null 2>&1 && [ -x /usr/lib64/openmpi/bin/mpicc ]; then
        PATH=/usr/lib64/openmpi/bin:$PATH
        export PATH
    fi
}

can_install() {
    { command -v apt-get || command -v dnf; } >/dev/null 2>&1 &&
        { [ "$(id -u)" -eq 0 ] || command -v sudo >/dev/null 2>&1; }
}

# install_missing GROUPS: installs the missing dependencies of the groups. Fails if any of `build` or, where
# it is one of the groups, of `mpi` is missing afterwards; of other groups, only prints them.
install_missing() {
    find_mpi
    what=$(missing "$1" 2)
    if [ -z "$what" ]; then return; fi
    case " $1 " in *" mpi "* | " all ") required="build mpi" ;; *) required=build ;; esac
    if [ "$1" != all ] && [ "$1" != test ] && ! can_install && [ -z "$(missing "$required" 2)" ]; then
        echo "gentables: missing: $what; parts that need it are left out; to install: $(missing "$1" 3)"
        return
    fi
    echo "gentables: installing: $what"
    if command -v apt-get >/dev/null 2>&1; then
        as_root apt-get -qq update
        # shellcheck disable=SC2046 # a list of packages
        as_root env DEBIAN_FRONTEND=noninteractive apt-get -qqy -o Dpkg::Use-Pty=0 \
            install --no-install-recommends $(missing "$1" 3)
    elif command -v dnf >/dev/null 2>&1; then
        # shellcheck disable=SC2046
        as_root dnf install -qy --setopt=install_weak_deps=False --setopt=strict=0 \
            $(missing "$1" 4)
    else
        fail "neither apt-get nor dnf found; install these, by their Debian names: $(missing "$1" 3)"
    fi
    find_mpi
    left=$(missing "$1" 2)
    if [ -z "$left" ]; then return; fi
    if [ "$1" != test ] && [ -n "$(missing "$required" 2)" ]; then
        fail "still missing: $(missing "$required" 2)(CMake 3.25 or later and Lua 5.4 are required)"
    fi
    echo "gentables: missing: $left; parts and tests that need it are left out"
}

# The build tree keeps GENTABLES_ARCH. Without GENTABLES_CUDA_COMPILE, kernels for GPUs are compiled if there
# is an nvcc.
configure() {
    cmake --preset default ${GENTABLES_ARCH:+"-DGENTABLES_ARCH=$GENTABLES_ARCH"} \
        ${GENTABLES_CUDA_COMPILE:+"-DGENTABLES_CUDA_COMPILE=$GENTABLES_CUDA_COMPILE"}
}

build() {
    configure
    cmake --build build "$@"
}

has_target() {
    ninja -C build -t query "$1" >/dev/null 2>&1
}

# check_name NAME: fails unless it is a verb, one of the targets, or another target of the built tree.
check_name() {
    case " $targets " in *" $1 "*) return ;; esac
    if [ -f "generator/verbs/$1.lua" ]; then return; fi
    if [ -f build/build.ninja ] && has_target "$1"; then return; fi
    verbs=$(cd generator/verbs && echo *.lua | sed 's/[.]lua//g')
    fail "no verb or target '$1'; verbs: $verbs; targets: $targets; in a built tree also its other targets"
}

# configure_for GROUP...: configures unless the tree was configured with these groups. build/dev.groups lists
# the groups that were complete then.
configure_for() {
    new=
    for group in "$@"; do grep -qsx "$group" build/dev.groups || new="$new $group"; done
    if [ -f build/build.ninja ] && [ -z "$new" ]; then return; fi
    configure >/dev/null
    for group in $new; do
        if [ -z "$(missing "$group" 2)" ]; then echo "$group" >>build/dev.groups; fi
    done
}

# run_verb VERB ARGUMENT...: gentables in the folder of the caller. Output of the build goes to stderr.
run_verb() {
    groups="build $(uses "$1")"
    install_missing "$groups" >&2
    # shellcheck disable=SC2086 # a list
    configure_for $groups >&2
    wanted="gentables gentables-modules"
    for program in $(programs_of "$1"); do
        if has_target "$program"; then wanted="$wanted $program"; fi
    done
    # shellcheck disable=SC2086 # a list
    cmake --build build --target $wanted >&2
    cd "$from"
    exec "$root/build/bin/gentables" "$@"
}

# The files that differ from the last commit, and new ones.
changed_files() {
    git diff --name-only --diff-filter=d HEAD
    git ls-files --others --exclude-standard
}

# files_of_root FILE...: the paths of these files relative to the root, one in each line; FILEs are relative
# to $from.
files_of_root() {
    for file in "$@"; do
        path=$(cd "$from" && realpath -- "$file")
        if [ ! -f "$path" ]; then fail "$file: no such file"; fi
        printf '%s\n' "${path#"$root/"}"
    done
}

# check FILE...: style, build and the tests that concern these files.
check() {
    if [ $# -eq 0 ]; then files=$(changed_files); else files=$(files_of_root "$@"); fi
    if [ -z "$files" ]; then
        echo "gentables: no changes since the last commit; name the files to check"
        return
    fi
    # shellcheck disable=SC2086 # a list
    set -- $files
    for tool in line-length clang-format luacheck shellcheck; do
        sh tests/style/style.sh "$tool" "$@" || [ $? -eq 77 ] || fail "$tool: see above"
    done
    if [ ! -f build/CMakeCache.txt ]; then install_missing all; fi
    build
    ctest --test-dir build --show-only=json-v1 >build/tests.json
    tests=$(build/bin/gentables lua cmake/check.lua build/tests.json \
        build/Testing/Temporary/CTestCostData.txt "$@")
    if [ -z "$tests" ]; then
        echo "gentables: no test concerns $*; CI runs all tests"
        return
    fi
    ctest --preset default -R "^($(echo "$tests" | sed 's/[.]/[.]/g' | paste -sd '|'))\$"
}

# From here on paths are relative to the root of the checkout.
from=$(pwd)
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
if [ ! -f "$root/CMakePresets.json" ]; then
    fail "$root is not a checkout of gentables; call the dev.sh of one"
fi
cd "$root"

if [ $# -eq 0 ]; then
    usage >&2
    exit 2
fi
target=$1
shift
case $target in
-h | --help | help) usage ;;
deps)
    case ${1:-all} in
    build) install_missing "build mpi" ;;
    test | all) install_missing "${1:-all}" ;;
    *) fail "deps takes build, test or all, not '$1'" ;;
    esac
    ;;
test)
    install_missing all
    build
    ctest --preset default "$@"
    ;;
check) check "$@" ;;
-*) fail "unknown option $target; see sh cmake/dev.sh --help" ;;
*)
    check_name "$target"
    if [ -f "generator/verbs/$target.lua" ]; then run_verb "$target" "$@"; fi
    install_missing "build $(uses "$target")"
    build --target "$target" "$@"
    ;;
esac
