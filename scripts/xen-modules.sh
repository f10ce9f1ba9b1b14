#!/bin/sh
# Compiles dom0's modules (runtime/dom0), and one for a test (runtime/tests/xen-faults), against
# the stock kernel's headers.
#
#   scripts/xen-modules.sh
#
# Needs target/stock/headers (scripts/headers.sh). Leaves target/xen/dom0/twin_dom0.ko and
# twin_hot.ko, xen_faults.ko; what is up to date is kept.
set -eu

root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd -P)
made=$root/target/xen/dom0

die() {
    printf 'xen-modules.sh: %s\n' "$*" >&2
    exit 1
}

[ -e "$root/target/stock/headers/Makefile" ] || die "no target/stock/headers: run make stock"
mkdir -p "$made"
# kbuild says that it leaves out BTF, which is not needed; the rest is for who must mend it.
for sources in runtime/dom0 runtime/tests/xen-faults; do
    make -s -C "$root/$sources" HEADERS="$root/target/stock/headers" OUT="$made" >"$made/log" 2>&1 || {
        cat "$made/log" >&2
        die "$sources: kbuild failed (above)"
    }
done
