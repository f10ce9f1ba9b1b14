#!/bin/sh
# Compiles dom0's modules (runtime/dom0), and one for a test (runtime/tests/xen-faults), against
# the stock kernel's headers.
#
#   scripts/xen-modules.sh
#
# Needs target/stock/headers (scripts/headers.sh), or with TWIN_XEN_RELEASE=trixie
# target/stock-6.12/headers. Leaves target/xen/dom0/twin_dom0.ko and twin_hot.ko, xen_faults.ko
# (scripts/xen/release.sh); what is up to date is kept.
set -eu

root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd -P)
. "$root/scripts/xen/release.sh"
made=$xen/dom0
headers=$xen_stock/headers

die() {
    printf 'xen-modules.sh: %s\n' "$*" >&2
    exit 1
}

[ -e "$headers/Makefile" ] || die "no $headers: run make stock${xen_kernel:+ KERNEL=$xen_kernel}"
headers=$(CDPATH='' cd -P -- "$headers" && pwd -P)
mkdir -p "$made"
# What kbuild says is for who must mend it.
for sources in runtime/dom0 runtime/tests/xen-faults; do
    make -s -C "$root/$sources" HEADERS="$headers" OUT="$made" >"$made/log" 2>&1 || {
        cat "$made/log" >&2
        die "$sources: kbuild failed (above)"
    }
done
