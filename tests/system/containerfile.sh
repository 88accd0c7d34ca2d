#!/bin/sh
# The steps of packaging/Containerfile without a builder, each stage in a clean Debian 12 by debootstrap, with
# a clean clone of this repository's HEAD as the context; then the program of the image measures and makes a
# table, without a compiler. Ends with 0, 1 or 77 (cannot run here).
#
#   sudo sh tests/system/containerfile.sh
#
# It needs root, debootstrap and about 3 GiB in TMPDIR. It takes minutes, so ctest runs it with
# GENTABLES_NIGHTLY=1 only. Of a Containerfile it reads FROM debian:12, COPY, WORKDIR, RUN and ENTRYPOINT.
set -eu
cd "$(dirname -- "$0")/../.."
. tests/system/clean_debian.sh

# One step in a line: no comments, continued lines joined.
steps() {
    sed '/^#/d' packaging/Containerfile | sed -e ':join' -e '/\\$/{N' -e 's/\\\n *//' -e 'b join' -e '}'
}

# from debian:12 [AS NAME]: begins a stage, in $stage.
from() {
    if [ "$1" != debian:12 ]; then
        echo "FAILED: FROM $1: a Debian 12 is needed here"
        exit 1
    fi
    stage=$folder/${3:-image}
    place=/
    copy_debian "$folder/base" "$stage"
    mount_debian "$stage"
}

# copy [--from=NAME] SOURCE TARGET: from another stage, or from the context.
copy() {
    source=$folder/context
    case $1 in --from=*)
        source=$folder/${1#--from=}
        shift
        ;;
    esac
    # shellcheck disable=SC2086 # a pattern
    cp -R $source/${1#/} "$stage$2"
}

step() {
    instruction=$1
    shift
    case $instruction in
    FROM) from "$@" ;;
    COPY) copy "$@" ;;
    WORKDIR) place=$1 && mkdir -p "$stage$1" ;;
    RUN) in_debian "$stage" "$place" sh -c "$*" ;;
    ENTRYPOINT) echo "$*" >"$folder/entrypoint" ;;
    *)
        echo "FAILED: unknown step $instruction"
        exit 1
        ;;
    esac
}

# gentables ARGUMENT...: the program of the image.
gentables() {
    echo "== gentables $*"
    in_debian "$stage" "$place" gentables "$@"
}

if [ "${1:-}" != --inside ]; then
    if [ -n "${GENTABLES:-}" ]; then # in ctest
        if [ "${GENTABLES_NIGHTLY:-}" != 1 ] || [ "$(id -u)" -ne 0 ] ||
            ! command -v debootstrap >/dev/null; then
            skip "runs at night, as root, with debootstrap"
        fi
    fi
    in_own_namespaces tests/system/containerfile.sh
fi
folder=$2
new_debian "$folder/base"
git clone -q --no-hardlinks . "$folder/context"
steps >"$folder/steps"
while read -r line; do
    if [ -z "$line" ]; then continue; fi
    echo "== $line"
    set -f
    # shellcheck disable=SC2086 # the words of the step
    set -- $line
    set +f
    step "$@" </dev/null
done <"$folder/steps"

grep -q '"gentables"' "$folder/entrypoint"
if in_debian "$stage" / sh -c 'command -v cc'; then
    echo "FAILED: the image has a compiler"
    exit 1
fi
gentables --version
gentables doctor
gentables sweep /usr/share/gentables/tables/host/spec.lua --out rows --tp 2 --budget 20
gentables generate --data-dir rows --arch host --out rows
test -s "$stage$place/rows/allreduce_table.h"
gentables plot --data-dir rows --arch host --out pictures
echo "== $(git log -1 --format='%h %s'): the steps of packaging/Containerfile end well"
