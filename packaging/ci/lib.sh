# Shared by the scripts for CI and for pre-commit. Sourced.
# shellcheck shell=sh

# find_gentables ROOT: sets $gentables: the program of $GENTABLES, else the one in PATH, else one that is
# built in ROOT, a checkout of gentables.
find_gentables() {
    gentables=${GENTABLES:-$(command -v gentables || :)}
    if [ -z "$gentables" ]; then
        sh "$1/cmake/dev.sh" diff --help >/dev/null
        gentables=$1/build/bin/gentables
    fi
}

# archs_of FOLDER: the archs of its rows, one in each line.
archs_of() {
    for rows in "$1"/benchmark.tp*.csv; do
        if [ -e "$rows" ]; then echo "$rows"; fi
    done | sed 's/^.*[.]\([^.]*\)[.]csv$/\1/' | sort -u
}

# check_folder FOLDER: compares the tables of each arch with its rows; prints differences, and the command
# that mends them. Returns 1 if there are any, 2 if it cannot compare.
check_folder() {
    result=0
    for arch in $(archs_of "$1"); do
        of_arch=0
        "$gentables" check --data-dir "$1" --arch "$arch" --tables "$1" || of_arch=$?
        if [ "$of_arch" -gt "$result" ]; then result=$of_arch; fi
    done
    return "$result"
}
