#!/bin/sh
# Prints a hash of each of twin's outputs for the stock kernel's Ethernet modules and
# sqlite's text, one on a line: to compare two versions of twin whose output must be
# the same.
#
#   scripts/hashes.sh TWIN >before
#
# For modules: both targets that objects have, and all schemes that each has. A line is
# `hash target scheme file`, or `refused` instead of the hash. The modules are those of
# `make stock`, the texts those of `scripts/programs.sh text target/bench`, if there.
#
#   SCHEMES   fewer of them, for a version of twin that lacks some
set -eu

root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
twin=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# rewritten FILE TARGET SCHEME ENDING
rewritten() {
    out=$work/out.$4
    rm -f "$out"
    hash=refused
    if "$twin" rewrite --target "$2" --scheme "$3" "$1" -o "$out" 2>/dev/null >&2; then
        hash=$(sha256sum <"$out" | cut -d ' ' -f 1)
    fi
    echo "$hash $2 $3 ${1##*/}"
}

modules() {
    find "$root/target/stock/modules/kernel/drivers/net/ethernet" -name '*.ko' | sort
}

for scheme in ${SCHEMES:-stlb paper window32 window}; do
    modules | while read -r module; do
        rewritten "$module" hypervisor "$scheme" o
        case $scheme in
        window*) ;;
        *) rewritten "$module" linux "$scheme" ko ;;
        esac
    done
done
for text in "$root"/target/bench/*.s; do
    [ ! -e "$text" ] || rewritten "$text" process stlb s
done
