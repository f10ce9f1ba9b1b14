#!/bin/sh
# Makes what the host needs to build a livepatch of the stock e1000 for target/xen's
# hypervisor, or with TWIN_XEN_RELEASE=trixie for target/xen-trixie's (scripts/xen/release.sh).
#
#   scripts/xen-payload.sh
#
# Needs target/stock with headers, target/xen (scripts/xen-packages.sh) and twin. Leaves
#   target/xen/dom0/       dom0's modules (scripts/xen-modules.sh)
#   target/xen/payload/    twin, platform.o (runtime/platform/xen) and platform-test.o,
#                          xen.table of that hypervisor, and e1000 and twin_hot rewritten for `window`
#
#   TWIN  the command (default target/release/twin)
set -eu

root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd -P)
. "$root/scripts/xen/release.sh"
payload=$xen/payload
twin=$(realpath -m -- "${TWIN:-$root/target/release/twin}")

die() {
    printf 'xen-payload.sh: %s\n' "$*" >&2
    exit 1
}

# What is made of it is made anew only if one of the others is newer: `older FILE OTHER...`.
older() {
    made=$1
    shift
    [ -e "$made" ] || return 0
    [ -n "$(find -L "$@" -newer "$made" -print | head -n 1)" ]
}

build_id() {
    readelf -n "$1" | sed -n 's/.*Build ID: \([0-9a-f]*\).*/\1/p' | head -n 1
}

rewritten() {
    ! older "$payload/$2" "$1" "$twin" || "$twin" rewrite --scheme window "$1" -o "$payload/$2"
}

[ -x "$twin" ] || die "no $twin: run make build"
[ -s "$xen/VERSION" ] || die "no $xen/VERSION: run scripts/xen-packages.sh"
mkdir -p "$payload"

sh "$root/scripts/xen-modules.sh"
make -s -C "$root/runtime" xen xen-test

id=$(build_id "$xen/xen")
table=$root/target/xen-tables/$id.table
! older "$table" "$root/crates/xen-table/src" || sh "$root/scripts/xen-table.sh" "$xen/xen.deb"
[ -e "$table" ] || die "no table of the hypervisor $id: remove $xen and run make xen again"

ln -sf "$twin" "$payload/twin"
ln -sf "$table" "$payload/xen.table"
ln -sf "$root/runtime/build/twin-xen.o" "$payload/platform.o"
ln -sf "$root/runtime/build/twin-xen-test.o" "$payload/platform-test.o"
rewritten "$xen_stock/modules/kernel/drivers/net/ethernet/intel/e1000/e1000.ko" e1000.twin.o
rewritten "$xen/dom0/twin_hot.ko" twin_hot.twin.o
echo "payload: $payload"
