#!/bin/sh
# Fetches Debian's stock Xen, its tools and the libraries that they need, without
# installing any.
#
#   scripts/xen-packages.sh
#
# Of Debian 12, or with TWIN_XEN_RELEASE=trixie of Debian 13 (scripts/xen/release.sh). Needs
# target/stock (scripts/stock.sh), or target/stock-6.12 (scripts/kernel.sh). Leaves, all
# below target/xen/ or target/xen-trixie/:
#   root/      the unpacked packages
#   xen        the hypervisor, decompressed: what QEMU's -kernel takes
#   xen.deb    its package, for scripts/xen-table.sh
#   vmlinux    the release's stock kernel, decompressed: dom0's and the guests'
#   VERSION    package and version of the hypervisor
#
# Every library that a program of the list needs must be in one of these packages: the
# script follows their dynamic sections and names what is missing. If VERSION exists, apt is
# not called; remove that folder to start over. TWIN_DEBIAN_MIRROR as for stock.sh.
set -eu

root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
. "$root/scripts/xen/release.sh"
apt=$xen/apt

die() {
    printf 'xen-packages.sh: %s\n' "$*" >&2
    exit 1
}

. "$root/scripts/apt.sh"
. "$root/scripts/xen/programs.sh"

complete() {
    [ -s "$xen/VERSION" ] && [ -s "$xen/xen" ] && [ -s "$xen/vmlinux" ] &&
        [ -s "$xen/xen.deb" ] && [ -e "$xen/root/${xen_merged}sbin/ethtool" ]
}

# ---- Packages ----------------------------------------------------------------

fetch() {
    mkdir -p "$apt"
    options="$(private_options) $(suite_options deb "$xen_release")"
    echo "asking apt for the Xen of Debian's $xen_release ..."
    # shellcheck disable=SC2086
    apt-get $options -q update >apt.log 2>&1 || true
    has_suite "$xen_release" || {
        tail -n 3 apt.log >&2
        die "no index of $xen_release from $mirror (above: apt's last words); check the network, or set TWIN_DEBIAN_MIRROR"
    }
    # shellcheck disable=SC2046,SC2086
    set -- $(echo $xen_packages)
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
    gzip -dc "tree/boot/xen-$xen_version-amd64.gz" >hypervisor || die "the package has no /boot/xen-$xen_version-amd64.gz"
    missing=$(missing_libraries tree)
    [ -z "$missing" ] || die "no package of the list has $(echo $missing): add it to scripts/xen/release.sh"
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
    # What follows the stream is its length, in four bytes, not another one.
    case $(number "$image" "$at" 4) in
    1484404733) tail -c "+$((at + 1))" "$image" | head -c "$length" | xz -dc --single-stream ;;
    4247762216) tail -c "+$((at + 1))" "$image" | head -c $((length - 4)) | zstd -dc ;;
    *) die "$image is compressed neither by xz nor by zstd, as Debian's kernels are" ;;
    esac || die "$image cannot be decompressed"
}

main() {
    if complete; then
        echo "stock Xen: $(cat "$xen/VERSION") (${xen#"$root"/})"
        return
    fi
    need_tools apt-get dpkg-deb gzip xz readelf od
    kernel=$(find "$xen_stock/boot/" -name 'vmlinuz-*' 2>/dev/null | head -n 1)
    [ -n "$kernel" ] || die "no $xen_stock/boot/vmlinuz-*: run make stock${xen_kernel:+ KERNEL=$xen_kernel} first"
    work_below "$xen"
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
    complete || die "the packages were fetched, but $xen is not complete; remove it and try again"
    echo "stock Xen: $(cat "$xen/VERSION") (${xen#"$root"/})"
}

main "$@"
