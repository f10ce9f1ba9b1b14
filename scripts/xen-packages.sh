#!/bin/sh
# Fetches Debian 12's stock Xen, its tools and the libraries that they need, without
# installing any.
#
#   scripts/xen-packages.sh
#
# Needs target/stock (scripts/stock.sh). Leaves, all below target/xen/:
#   root/      the unpacked packages
#   xen        the hypervisor, decompressed: what QEMU's -kernel takes
#   xen.deb    its package, for scripts/xen-table.sh
#   vmlinux    the stock kernel of target/stock, decompressed: dom0's and the guests'
#   VERSION    package and version of the hypervisor
#
# Every library that a program of the list needs must be in one of these packages: the
# script follows their dynamic sections and names what is missing. If VERSION exists, apt is
# not called; remove target/xen to start over. TWIN_DEBIAN_MIRROR as for stock.sh.
set -eu

root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
xen=$root/target/xen
apt=$xen/apt

die() {
    printf 'xen-packages.sh: %s\n' "$*" >&2
    exit 1
}

. "$root/scripts/apt.sh"
. "$root/scripts/xen/programs.sh"

packages='
xen-hypervisor-4.17-amd64 xen-utils-4.17 xen-utils-common xenstore-utils
libxenstore4 libxencall1 libxenevtchn1 libxenforeignmemory1 libxengnttab1 libxenmisc4.17
libxentoollog1 libxentoolcore1 libxendevicemodel1 libxenhypfs1
busybox-static kmod libkmod2
libc6 libgcc-s1 libuuid1 libyajl2 libncurses6 libtinfo6 liblzma5 libzstd1 zlib1g
libnl-3-200 libnl-route-3-200 liblzo2-2 libbz2-1.0 libfdt1 libssl3 libext2fs2 libcom-err2
'

complete() {
    [ -s "$xen/VERSION" ] && [ -s "$xen/xen" ] && [ -s "$xen/vmlinux" ] &&
        [ -s "$xen/xen.deb" ] && [ -d "$xen/root/" ]
}

# ---- Packages ----------------------------------------------------------------

fetch() {
    mkdir -p "$apt"
    options="$(private_options) $(bookworm_options deb)"
    echo "asking apt for Debian 12's Xen ..."
    # shellcheck disable=SC2086
    apt-get $options -q update >apt.log 2>&1 || true
    has_suite bookworm || {
        tail -n 3 apt.log >&2
        die "no index of Debian 12 from $mirror (above: apt's last words); check the network, or set TWIN_DEBIAN_MIRROR"
    }
    # shellcheck disable=SC2046,SC2086
    set -- $(echo $packages)
    echo "fetching $# packages (some 25 MB) ..."
    # shellcheck disable=SC2086
    apt-get $options -q download "$@" >apt.log 2>&1 || {
        tail -n 5 apt.log >&2
        die "cannot fetch them (above: apt's last words); check the network, or set TWIN_DEBIAN_MIRROR"
    }
}

unpack() {
    mkdir tree
    for deb in ./*.deb; do
        dpkg-deb -x "$deb" tree
    done
    gzip -dc tree/boot/xen-4.17-amd64.gz >hypervisor || die "the package has no /boot/xen-4.17-amd64.gz"
    missing=$(missing_libraries tree)
    [ -z "$missing" ] || die "no package of the list has $(echo $missing): add it to scripts/xen-packages.sh"
    dpkg-deb -W --showformat='${Package} ${Version}\n' ./xen-hypervisor-*.deb >VERSION
}

# ---- The kernel --------------------------------------------------------------

# A little-endian number of $3 bytes at $2 of the file $1.
number() {
    od -An -v -t "u$3" -j "$2" -N "$3" "$1" | tr -d ' '
}

# The kernel inside a bzImage (Documentation/arch/x86/boot.rst: setup_sects at 0x1f1,
# payload_offset at 0x248 and payload_length at 0x24c, from the protected-mode code). A PV
# kernel that needs no decompressing boots several seconds earlier under emulation.
vmlinux() {
    image=$1
    at=$((($(number "$image" $((0x1f1)) 1) + 1) * 512 + $(number "$image" $((0x248)) 4)))
    length=$(number "$image" $((0x24c)) 4)
    # What follows the stream is its length, not another one.
    tail -c "+$((at + 1))" "$image" | head -c "$length" | xz -dc --single-stream ||
        die "$image is not compressed by xz, which Debian 12's kernel is"
}

main() {
    if complete; then
        echo "stock Xen: $(cat "$xen/VERSION") (target/xen)"
        return
    fi
    for tool in apt-get dpkg-deb gzip xz readelf od; do
        command -v "$tool" >/dev/null || die "no $tool: run scripts/setup.sh"
    done
    kernel=$(find "$root/target/stock/boot/" -name 'vmlinuz-*' 2>/dev/null | head -n 1)
    [ -n "$kernel" ] || die "no target/stock/boot/vmlinuz-*: run make stock first"
    mkdir -p "$xen"
    work=$(mktemp -d "$xen/fetch.XXXXXX")
    trap 'rm -rf "$work"' EXIT
    trap 'exit 1' HUP INT TERM
    cd "$work"
    fetch
    unpack
    vmlinux "$kernel" >vmlinux
    rm -rf "$xen/root" "$apt"
    mv tree "$xen/root"
    mv hypervisor "$xen/xen"
    mv xen-hypervisor-*.deb "$xen/xen.deb"
    mv vmlinux "$xen/vmlinux"
    # Last: when VERSION is there, all the rest is complete.
    mv VERSION "$xen/VERSION"
    complete || die "the packages were fetched, but target/xen is not complete; remove it and try again"
    echo "stock Xen: $(cat "$xen/VERSION") (target/xen)"
}

main "$@"
