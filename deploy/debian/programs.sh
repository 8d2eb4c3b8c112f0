#!/bin/sh
# Tries the programs that `cargo xtask release` makes. As root on Debian or Ubuntu, with debootstrap, qemu-user and
# libc6-arm64-cross:
#   programs.sh FOLDER-OF-THE-RELEASE FOLDER-FOR-ROOTS [SUITE=MIRROR...]
# Each starts and serves its page: that of x86-64 in minimal roots, which are made once, that of aarch64 emulated.
# Ends at the first failure.
set -eu
release=$(realpath "$1")
mkdir -p "$2"
roots=$(realpath "$2")
shift 2
debian=http://deb.debian.org/debian
[ $# -gt 0 ] || set -- bookworm=$debian trixie=$debian noble=http://archive.ubuntu.com/ubuntu
programs=$(mktemp -d)
trap 'rm -r "$programs"' EXIT
for archive in "$release"/windlass-*-linux-gnu.tar.gz; do
    tar --extract --gzip --file "$archive" --directory "$programs"
done

# Starts a program by these words: it must serve its page, and end in order.
serves() {
    "$@" serve --http 127.0.0.1:17880 --udp 127.0.0.1:17881 >"$programs/log" 2>&1 &
    server=$!
    for _ in $(seq 60); do
        curl --fail --silent --output /dev/null http://127.0.0.1:17880/healthz && break
        sleep 0.5
    done
    curl --fail --silent http://127.0.0.1:17880/ | grep -q '<!doctype html>' || { cat "$programs/log" >&2; exit 1; }
    kill "$server"
    wait "$server" || { cat "$programs/log" >&2; exit 1; }
}

for pair in "$@"; do
    root=$roots/${pair%%=*}
    # All suites of a distribution are made in the same way, also those that are newer than debootstrap.
    case $pair in *ubuntu*) suites=gutsy ;; *) suites=sid ;; esac
    [ -e "$root/etc/os-release" ] ||
        debootstrap --variant=minbase --no-check-gpg "${pair%%=*}" "$root" "${pair#*=}" "/usr/share/debootstrap/scripts/$suites" >"$root.log"
    install "$programs"/windlass-*-x86_64-unknown-linux-gnu/windlass "$root/usr/local/bin/windlass"
    serves chroot "$root" env -i /usr/local/bin/windlass
    echo "serves its page in $(. "$root/etc/os-release" && echo "$PRETTY_NAME")"
done
for program in "$programs"/windlass-*-aarch64-unknown-linux-gnu/windlass; do
    serves qemu-aarch64 -L /usr/aarch64-linux-gnu "$program"
    echo "serves its page on an emulated aarch64"
done
