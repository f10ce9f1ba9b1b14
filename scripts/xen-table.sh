#!/bin/sh
# Makes the table of a build of Xen, which `twin payload` reads, out of Debian's package.
# Nothing is installed.
#
#   scripts/xen-table.sh bookworm|trixie    the release's hypervisor, fetched
#   scripts/xen-table.sh PACKAGE.deb        this package
#   scripts/xen-table.sh IMAGE.gz           this hypervisor, as it lies in /boot
#   scripts/xen-table.sh                    both releases
#
# Leaves target/xen-tables/BUILD-ID.table, and prints the name of each. Debian has no debug
# information of its hypervisor. So symbols are those that Xen carries for its own
# messages, and offsets are read out of small functions that use them (crates/xen-table).
# TWIN_DEBIAN_MIRROR as for stock.sh.
set -eu

root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
tables=$root/target/xen-tables

die() {
    printf 'xen-table.sh: %s\n' "$*" >&2
    exit 1
}

. "$root/scripts/apt.sh"

# The hypervisor's package of a release.
package_of() {
    case $1 in
    bookworm) echo xen-hypervisor-4.17-amd64 ;;
    trixie) echo xen-hypervisor-4.20-amd64 ;;
    *) die "$1 is neither a package nor bookworm or trixie" ;;
    esac
}

# fetch RELEASE: its package, into the directory that this runs in.
fetch() {
    apt=$work/apt-$1
    mkdir -p "$apt"
    options="$(private_options) $(suite_options deb "$1")"
    # shellcheck disable=SC2086
    apt-get $options -q update >apt.log 2>&1 || true
    # shellcheck disable=SC2086
    apt-get $options -q download "$(package_of "$1")" >apt.log 2>&1 || {
        tail -n 5 apt.log >&2
        die "cannot fetch $(package_of "$1") from $mirror (above: apt's last words); check the network, or set TWIN_DEBIAN_MIRROR"
    }
}

# package PACKAGE.deb: its hypervisor, and its version.
package() {
    rm -rf tree
    dpkg-deb -x "$1" tree
    image=$(find tree/boot -name 'xen-*.gz')
    [ "$(printf '%s\n' "$image" | grep -c .)" = 1 ] || die "$1 has not one /boot/xen-*.gz; is it a hypervisor's package?"
    table "$image" "$(dpkg-deb -W --showformat='${Version}' "$1")"
}

# installed IMAGE.gz: its version is that of the package that it belongs to.
installed() {
    owner=$(dpkg-query -S "$1" 2>/dev/null | sed 's/:.*//')
    version=$([ -z "$owner" ] || dpkg-query -W --showformat='${Version}' "$owner")
    table "$1" "${version:-of no package}"
}

# table IMAGE.gz VERSION
table() {
    gzip -dc "$1" >hypervisor
    "$program" hypervisor "$2" >table
    name=$(sed -n 's/^build-id //p' table)
    mv table "$tables/$name.table"
    echo "Xen $2: target/xen-tables/$name.table"
}

for tool in apt-get dpkg-deb gzip cargo; do
    command -v "$tool" >/dev/null || die "no $tool: run scripts/setup.sh"
done
cd "$root"
cargo build --quiet -p xen-table
program=${CARGO_TARGET_DIR:-$root/target}/debug/xen-table
mkdir -p "$tables"
work=$(mktemp -d "$tables/work.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
[ $# -gt 0 ] || set -- bookworm trixie
for what; do
    case $what in
    *.deb | *.gz)
        from=$(CDPATH='' cd -- "$(dirname -- "$what")" && pwd)/$(basename -- "$what")
        cd "$work"
        ;;
    *)
        cd "$work"
        rm -f ./*.deb
        fetch "$what"
        from=$(find "$work" -maxdepth 1 -name '*.deb')
        ;;
    esac
    [ -f "$from" ] || die "no file $from"
    case $from in
    *.gz) installed "$from" ;;
    *) package "$from" ;;
    esac
    cd "$root"
done
