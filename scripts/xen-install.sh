#!/bin/sh
# Installs what `twin xen` needs besides the command, for a system with Xen: the runtime's
# object for Xen, a table of each build of Xen, dom0's modules.
#
#   scripts/xen-install.sh DIR [--headers DIR] [--xen IMAGE|PACKAGE.deb]...
#
#   DIR         where `twin xen` finds it: PREFIX/lib/twin/xen beside PREFIX/bin/twin
#   --headers   of the kernel that dom0 runs (default /lib/modules/RELEASE/build of the
#               kernel that runs now)
#   --xen       a hypervisor, as in /boot, or its package (default: each /boot/xen-*.gz)
#
# Needs gcc, make and cargo, as scripts/setup.sh has them. What is in DIR for other kernels
# and builds of Xen stays there. DIR has (crates/xen-host/src/kit.rs)
#   twin-xen.o  tables/BUILD-ID.table  modules/RELEASE/twin_{dom0,hot}.ko  vif-twin
set -eu

root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd -P)
tables=$root/target/xen-tables

die() {
    printf 'xen-install.sh: %s\n' "$*" >&2
    exit 1
}

usage() {
    echo 'usage: xen-install.sh DIR [--headers DIR] [--xen IMAGE|PACKAGE.deb]...' >&2
    exit 2
}

# ---- What is installed ---------------------------------------------------------

platform() {
    make -s -C "$root/runtime" xen
    install -m 644 "$root/runtime/build/twin-xen.o" "$kit/twin-xen.o"
    install -m 755 "$root/scripts/xen/vif-twin" "$kit/vif-twin"
    echo "twin-xen.o: the runtime for Xen"
}

# table HYPERVISOR: its table; xen-table.sh prints which.
table() {
    [ -e "$1" ] || die "no $1"
    said=$(sh "$root/scripts/xen-table.sh" "$1") || die "no table of $1 (above)"
    name=${said##*/}
    install -m 644 "$tables/$name" "$kit/tables/$name"
    echo "tables/$name: ${said%%:*}"
}

# dom0's modules against the headers, in a folder of this run: those of another kernel are not
# taken for these.
modules() {
    [ -e "$headers/Makefile" ] || die "no headers in $headers: apt install linux-headers-$(uname -r), or name them with --headers"
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    trap 'exit 1' HUP INT TERM
    make -s -C "$root/runtime/dom0" HEADERS="$headers" OUT="$work" >"$work/log" 2>&1 || {
        cat "$work/log" >&2
        die "dom0's modules: kbuild failed (above)"
    }
    # What the modules say themselves: it is what the kernel compares.
    release=$(tr '\0' '\n' <"$work/twin_hot.ko" | sed -n 's/^vermagic=\([^ ]*\).*/\1/p')
    mkdir -p "$kit/modules/$release"
    install -m 644 "$work/twin_dom0.ko" "$work/twin_hot.ko" "$kit/modules/$release/"
    echo "modules/$release: twin_dom0.ko twin_hot.ko"
}

# ---- The command line ------------------------------------------------------------

[ $# -gt 0 ] || usage
case $1 in -*) usage ;; esac
kit=$1
headers=/lib/modules/$(uname -r)/build
newline='
'
hypervisors=	# a line each: a path may have blanks
shift
while [ $# -gt 0 ]; do
    [ $# -gt 1 ] || usage
    case $1 in
    --headers) headers=$2 ;;
    --xen) hypervisors=$hypervisors${hypervisors:+$newline}$2 ;;
    *) usage ;;
    esac
    shift 2
done
for tool in make gcc cargo readelf install; do
    command -v "$tool" >/dev/null || die "no $tool: run scripts/setup.sh"
done
[ -n "$hypervisors" ] || hypervisors=$(find /boot -maxdepth 1 -type f -name 'xen-*.gz' 2>/dev/null)
[ -n "$hypervisors" ] || die "no /boot/xen-*.gz: apt install xen-system-amd64, or name a hypervisor with --xen"

mkdir -p "$kit/tables" "$kit/modules"
kit=$(CDPATH='' cd -- "$kit" && pwd -P)
headers=$(CDPATH='' cd -P -- "$headers" 2>/dev/null && pwd -P) || die "no headers of the kernel: apt install linux-headers-$(uname -r), or name them with --headers"
platform
printf '%s\n' "$hypervisors" | while IFS= read -r hypervisor; do
    table "$hypervisor" </dev/null
done
modules
echo "installed: $kit"
