#!/bin/sh
# Prints a hash of each of twin's outputs for the stock kernel's Ethernet modules and
# sqlite's text, one on a line: to compare two versions of twin whose output must be
# the same.
#
#   scripts/hashes.sh TWIN >before
#
# For modules: both targets that objects have, and all schemes. A line is
# `hash target scheme file`, or `refused` instead of the hash. The modules are those of
# `make stock`, the texts those of `scripts/programs.sh text target/bench`, if there.
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

for scheme in stlb paper; do
    find "$root/target/stock/modules/kernel/drivers/net/ethernet" -name '*.ko' | sort |
        while read -r module; do
            rewritten "$module" hypervisor "$scheme" o
            rewritten "$module" linux "$scheme" ko
        done
done
for text in "$root"/target/bench/*.s; do
    [ ! -e "$text" ] || rewritten "$text" process stlb s
done
