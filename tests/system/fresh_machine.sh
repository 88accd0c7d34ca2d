#!/bin/sh
# Both commands of README on an empty machine: a clean Debian 12 by debootstrap, with a clean clone of this
# repository's HEAD. Reports the result of each; ends with 0, 1 (a command failed) or 77 (cannot run here).
#
#   sudo sh tests/system/fresh_machine.sh
#
# It needs root, debootstrap, a Debian mirror (the one of this machine's apt, else debootstrap's own) and
# about 3 GiB in TMPDIR. Everything runs in mount and process namespaces of its own: after any end, nothing
# stays mounted or running. It takes minutes, and is therefore no part of ctest.
set -eu

release=bookworm

skip() {
    echo "skipped: $1"
    exit 77
}

# The mirror of this machine's own apt sources for the release; empty if there is none.
find_mirror() {
    apt-get indextargets --format '$(ORIGIN) $(CODENAME) $(REPO_URI)' 'Created-By: Packages' 2>/dev/null |
        sed -n "s/^Debian $release //p" | head -n 1
}

# in_machine FOLDER COMMAND...: runs it there with the environment of a new login.
in_machine() {
    folder=$1
    shift
    env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin TERM="${TERM:-dumb}" \
        ${http_proxy:+http_proxy="$http_proxy"} ${https_proxy:+https_proxy="$https_proxy"} \
        chroot "$machine" sh -c 'cd "$1" && shift && exec "$@"' - "$folder" "$@"
}

# try COMMAND: one command of README in the clone; adds a line to the report.
try() {
    echo "== sh cmake/dev.sh $1"
    started=$(date +%s)
    result=ok
    in_machine /gentables sh cmake/dev.sh "$1" || result="FAILED with exit code $?"
    echo "sh cmake/dev.sh $1: $result, $(($(date +%s) - started)) s" >>"$machine/report"
}

# The part inside the namespaces.
inside() {
    machine=$1
    mirror=$(find_mirror)
    if [ -n "$mirror" ]; then origin="this machine's mirror"; else origin="the standard mirror"; fi
    echo "== a clean Debian $release from $origin in $machine"
    # shellcheck disable=SC2086 # no mirror is no argument
    if ! debootstrap --variant=minbase --include=ca-certificates "$release" "$machine" $mirror \
        >"$machine.log" 2>&1; then
        tail -n 5 "$machine.log"
        skip "debootstrap failed; is there a Debian mirror?"
    fi
    # A root that is a mount lets tests make namespaces of their own.
    mount --bind "$machine" "$machine"
    mount -t proc proc "$machine/proc"
    mount -t sysfs -o ro sysfs "$machine/sys"
    mkdir -p "$machine/dev/shm" "$machine/dev/pts"
    mount -t tmpfs shm "$machine/dev/shm"
    mount -t devpts -o newinstance,ptmxmode=0666 devpts "$machine/dev/pts"
    ln -sf pts/ptmx "$machine/dev/ptmx"
    git clone -q --no-hardlinks . "$machine/gentables"
    try gen-tables
    echo "== what it changed in the clone"
    git -C "$machine/gentables" status --short
    try test
    echo "== $(git log -1 --format='%h %s'), on a clean Debian $release"
    cat "$machine/report"
    ! grep -q FAILED "$machine/report"
}

cd "$(dirname -- "$0")/../.."
if [ "${1:-}" = --inside ]; then
    inside "$2"
    exit
fi

if [ "$(id -u)" -ne 0 ]; then skip "it needs root, for debootstrap and chroot"; fi
if ! command -v debootstrap >/dev/null; then skip "it needs debootstrap (Debian: debootstrap)"; fi
if ! unshare --mount --pid --fork true 2>/dev/null; then skip "no namespace may be made here"; fi

machine=$(mktemp -d "${TMPDIR:-/tmp}/gentables-fresh.XXXXXX")
chmod 755 "$machine" # apt downloads as a user of its own
trap 'rm -rf --one-file-system "$machine" "$machine.log"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
code=0
unshare --mount --propagation private --pid --fork --kill-child --mount-proc \
    sh "tests/system/$(basename -- "$0")" --inside "$machine" || code=$?
exit "$code"
