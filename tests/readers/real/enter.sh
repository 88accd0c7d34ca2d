#!/bin/sh
# Runs a command in one of the Debians of debians.sh, with mounts of its own.
#
#   sh tests/readers/real/enter.sh ROOT COMMAND...
#
# The folders in BIND (with colons between them) have the same paths there. Needs root.
set -eu
if [ "$1" != --inside ]; then exec unshare --mount --propagation private sh "$0" --inside "$@"; fi
root=$2
shift 2
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
mount -t sysfs -o ro sysfs "$root/sys"
IFS=:
for folder in ${BIND:-}; do
    mkdir -p "$root$folder"
    mount --bind "$folder" "$root$folder"
done
TMPDIR=/tmp exec chroot "$root" "$@"
