#!/bin/sh
# Compiles dom0's modules (runtime/dom0) against the stock kernel's headers.
#
#   scripts/xen-modules.sh
#
# Needs target/stock/headers (scripts/headers.sh). Leaves target/xen/dom0/twin_dom0.ko and
# twin_hot.ko; what is up to date is kept.
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
make -s -C "$root/runtime/dom0" HEADERS="$root/target/stock/headers" OUT="$made" >"$made/log" 2>&1 || {
    cat "$made/log" >&2
    die "kbuild failed (above)"
}
