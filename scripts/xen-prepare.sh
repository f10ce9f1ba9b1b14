#!/bin/sh
# Everything that scripts/xen.sh needs for Debian's releases: kernel and headers, hypervisor and
# tools, dom0's modules, what payloads are made of, and what `twin xen` has installed.
#
#   scripts/xen-prepare.sh [bookworm|trixie]...    default: bookworm
#
# Needs a release build of twin (make build). What is there and up to date is kept.
set -eu

root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd -P)
[ $# -gt 0 ] || set -- bookworm
for TWIN_XEN_RELEASE; do
    export TWIN_XEN_RELEASE
    . "$root/scripts/xen/release.sh"
    if [ -n "$xen_kernel" ]; then
        sh "$root/scripts/kernel.sh" "$xen_kernel"
        sh "$root/scripts/headers.sh" "$xen_kernel"
    else
        sh "$root/scripts/stock.sh"
        sh "$root/scripts/headers.sh"
    fi
    sh "$root/scripts/xen-packages.sh"
    sh "$root/scripts/xen-payload.sh"
    sh "$root/scripts/xen-install.sh" "$xen/kit" --headers "$xen_stock/headers" --xen "$xen/xen.deb"
done
