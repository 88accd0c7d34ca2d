#!/bin/sh
# Makes Debians with programs that read our files, for real_readers_obey.sh: a folder for each release, with
# Open MPI, MPICH, UCC and PyTorch in the versions of that release. Folders that are finished stay.
# Prints their paths with colons between them, for GENTABLES_READERS.
#
#   sudo sh tests/readers/real/debians.sh FOLDER [RELEASE...]      default: trixie sid
#
# It needs root, debootstrap and about 5 GiB, and takes minutes. Not every release has every program.
set -eu
folder=$1
shift
[ $# -gt 0 ] || set -- trixie sid
cd "$(dirname -- "$0")/../../.."
. tests/system/clean_debian.sh
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)

# packages NAME...: installs them and what they need; those that the release lacks are left out.
packages() {
    known=$(in_debian "$root" / apt-cache policy "$@" | awk '/^[^ ]/ { name = $1 }
        /Candidate:/ && $2 != "(none)" { sub(":$", "", name); print name }')
    # shellcheck disable=SC2086
    DEBIAN_FRONTEND=noninteractive in_debian "$root" / apt-get install -y -q --no-install-recommends $known
}

# A release that is still changed may come from a mirror of another day.
make_root() {
    new_debian "$root"
    echo 'Acquire::Check-Valid-Until "false";' >"$root/etc/apt/apt.conf.d/99any-day"
    in_debian "$root" / apt-get update -q
    packages gcc libc6-dev openmpi-bin libopenmpi-dev mpich libmpich-dev python3
    packages libucc1 python3-torch
    touch "$root/finished"
}

paths=
for release; do
    root=$folder/$release
    if [ ! -e "$root/finished" ]; then
        rm -rf --one-file-system "$root"
        make_root >"$folder/$release.log" 2>&1 || { tail -n 20 "$folder/$release.log" >&2 && exit 1; }
    fi
    paths=${paths:+$paths:}$root
done
echo "$paths"
