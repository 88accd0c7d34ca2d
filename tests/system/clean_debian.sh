# Clean Debians by debootstrap, for scripts of this folder that run in the root of the sources. Sourced.
#
#   in_own_namespaces SCRIPT...   runs SCRIPT --inside FOLDER... in mount and process namespaces of its own,
#                                 and exits: then nothing is mounted or running, and the folder is gone. Skips
#                                 what cannot run here.
#   new_debian FOLDER             makes a Debian; about a minute
#   copy_debian FOLDER COPY       copies one that is not mounted
#   mount_debian FOLDER           mounts what programs need
#   in_debian FOLDER PLACE COMMAND...   runs it in the folder PLACE there, as after a new login
#
# They need root, debootstrap, and a Debian mirror: the one of this machine's apt, else debootstrap's own.
# shellcheck shell=sh
release=bookworm

skip() {
    echo "skipped: $1"
    exit 77
}

in_own_namespaces() {
    script=$1
    shift
    if [ "$(id -u)" -ne 0 ]; then skip "it needs root, for debootstrap and chroot"; fi
    if ! command -v debootstrap >/dev/null; then skip "it needs debootstrap (Debian: debootstrap)"; fi
    if ! unshare --mount --pid --fork true 2>/dev/null; then skip "no namespace may be made here"; fi
    folder=$(mktemp -d "${TMPDIR:-/tmp}/gentables-fresh.XXXXXX")
    chmod 755 "$folder" # apt downloads as a user of its own
    trap 'rm -rf --one-file-system "$folder"' EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM HUP
    code=0
    unshare --mount --propagation private --pid --fork --kill-child --mount-proc \
        sh "$script" --inside "$folder" "$@" || code=$?
    exit "$code"
}

# The mirror of this machine's own apt sources for the release; empty if there is none.
find_mirror() {
    apt-get indextargets --format '$(ORIGIN) $(CODENAME) $(REPO_URI)' 'Created-By: Packages' 2>/dev/null |
        sed -n "s/^Debian $release //p" | head -n 1
}

new_debian() {
    mirror=$(find_mirror)
    if [ -n "$mirror" ]; then origin="this machine's mirror"; else origin="the standard mirror"; fi
    echo "== a clean Debian $release from $origin in $1"
    # shellcheck disable=SC2086 # no mirror is no argument
    if ! debootstrap --variant=minbase --include=ca-certificates "$release" "$1" $mirror >"$1.log" 2>&1; then
        tail -n 5 "$1.log"
        skip "debootstrap failed; is there a Debian mirror?"
    fi
}

copy_debian() {
    cp -a "$1" "$2"
}

# A root that is a mount lets tests make namespaces of their own.
mount_debian() {
    mount --bind "$1" "$1"
    mount -t proc proc "$1/proc"
    mount -t sysfs -o ro sysfs "$1/sys"
    mkdir -p "$1/dev/shm" "$1/dev/pts"
    mount -t tmpfs shm "$1/dev/shm"
    mount -t devpts -o newinstance,ptmxmode=0666 devpts "$1/dev/pts"
    ln -sf pts/ptmx "$1/dev/ptmx"
}

in_debian() {
    machine=$1 place=$2
    shift 2
    env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin TERM="${TERM:-dumb}" \
        ${http_proxy:+http_proxy="$http_proxy"} ${https_proxy:+https_proxy="$https_proxy"} \
        chroot "$machine" sh -c 'cd "$1" && shift && exec "$@"' - "$place" "$@"
}
