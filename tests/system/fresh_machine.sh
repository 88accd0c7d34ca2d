#!/bin/sh
# Both commands of README, or other targets, on an empty machine: a clean Debian 12 by debootstrap, with a
# clean clone of this repository's HEAD. Reports the result of each; ends with 0, 1 (a command failed) or 77
# (cannot run here).
#
#   sudo sh tests/system/fresh_machine.sh [TARGET...]      default: gen-tables test
#
# It needs root, debootstrap and about 3 GiB in TMPDIR. It takes minutes, and is therefore no part of ctest.
set -eu
cd "$(dirname -- "$0")/../.."
. tests/system/clean_debian.sh

# try COMMAND: one command of README in the clone; adds a line to the report.
try() {
    echo "== sh cmake/dev.sh $1"
    started=$(date +%s)
    result=ok
    in_debian "$debian" /gentables sh cmake/dev.sh "$1" || result="FAILED with exit code $?"
    echo "sh cmake/dev.sh $1: $result, $(($(date +%s) - started)) s" >>"$debian/report"
}

if [ "${1:-}" != --inside ]; then in_own_namespaces tests/system/fresh_machine.sh "${@:-gen-tables test}"; fi
debian=$2/debian
shift 2
new_debian "$debian"
mount_debian "$debian"
git clone -q --no-hardlinks . "$debian/gentables"
# shellcheck disable=SC2068 # the default is two words
for target in $@; do
    try "$target"
    echo "== what it changed in the clone"
    git -C "$debian/gentables" status --short
done
echo "== $(git log -1 --format='%h %s'), on a clean Debian $release"
cat "$debian/report"
! grep -q FAILED "$debian/report"
