#!/bin/sh
# Fetches Debian's current kernel of a series, without installing it.
#
#   scripts/kernel.sh SERIES[-FLAVOUR][@SUITE]      5.10 6.1-rt 6.12 6.12@bookworm-backports ...
#
# Leaves, all below target/stock-SERIES[-FLAVOUR][@SUITE]/:
#   modules    -> the package's module tree (kernel/drivers/...), decompressed
#   boot       -> the package's /boot (vmlinuz, config)
#   VERSION    package and version that this is
#
# apt says which package is the current one, from lists of SUITE or else of the one that has the series;
# they are fetched below that directory, and so is all else. A series that is not in the
# table below is looked for in every suite. From Linux 7.2 on an image is several packages;
# the parts are found by its dependencies. If VERSION exists, apt is not called; remove the
# directory to start over. 6.1 is the stock kernel, which scripts/stock.sh fetches: its directory
# becomes a link to target/stock.
#
#   TWIN_DEBIAN_MIRROR  mirror for the lists (default http://deb.debian.org/debian)
set -eu

root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
kernel=${1:?SERIES[-FLAVOUR][@SUITE]}
stock=$root/target/stock-$kernel
apt=$stock/apt

die() {
    printf 'kernel.sh: %s\n' "$*" >&2
    exit 1
}

. "$root/scripts/apt.sh"

name=${kernel%%@*}
series=${name%%-*}
flavour=
[ "$series" = "$name" ] || flavour=${name#*-}-

# The newest image of the series and flavour that apt with options "$@" knows: names are
# linux-image-6.1.0-56-amd64, linux-image-6.12.95+deb13-cloud-amd64.
image() {
    pattern=$(printf '%s' "$series" | sed 's/\./\\./g')
    apt-cache "$@" pkgnames "linux-image-$series" |
        grep -xE "linux-image-$pattern(\.[0-9]+)*([-+~][0-9a-z.]+)?-${flavour}amd64" |
        sort -V | tail -n 1
}

# The image and those of its dependencies that have its release in their names: modules,
# vmlinuz.
parts() {
    package=$1
    shift
    release=${package#linux-image-}
    echo "$package"
    apt-cache "$@" depends "$package" |
        sed -n "s/^ *Depends: \(linux-[a-z]*-$release\)\$/\1/p" | sort -u
}

# Those that the suite does not have: apt-cache writes them as <NAME>. Backports keep the
# images of some series that others have followed, without their modules.
absent() {
    package=$1
    shift
    apt-cache "$@" depends "$package" |
        sed -n "s/^ *Depends: <\(linux-[a-z]*-${package#linux-image-}\)>\$/\1/p" | sort -u
}

fetch_from() {
    suite=$1
    mkdir -p "$apt"
    options="$(private_options) $(suite_options deb "$suite")"
    echo "asking apt for Linux $kernel in Debian's suite $suite ..."
    # shellcheck disable=SC2086
    apt-get $options -q update >apt.log 2>&1 || true
    if ! has_suite "$suite"; then
        tail -n 3 apt.log >&2
        echo "suite $suite is not on $mirror (any more): set TWIN_DEBIAN_MIRROR to one that has it" >&2
        return 1
    fi
    # shellcheck disable=SC2086
    package=$(image $options)
    if [ -z "$package" ]; then
        echo "suite $suite has no linux-image-$series*-${flavour}amd64" >&2
        return 1
    fi
    # shellcheck disable=SC2046,SC2086
    set -- $(absent "$package" $options)
    if [ $# -gt 0 ]; then
        echo "suite $suite has $package, but not what it needs: $*" >&2
        return 1
    fi
    # shellcheck disable=SC2046,SC2086
    set -- $(parts "$package" $options)
    echo "fetching $* ..."
    # shellcheck disable=SC2086
    apt-get $options -q download "$@" >apt.log 2>&1 || {
        tail -n 5 apt.log >&2
        die "cannot fetch $* (above: apt's last words); check the network, or set TWIN_DEBIAN_MIRROR"
    }
}

fetch() {
    for suite in $(suites_of "$kernel"); do
        ! fetch_from "$suite" || return 0
    done
    die "no Linux $kernel for amd64 in: $(suites_of "$kernel")"
}

unpack() {
    for deb in ./*.deb; do
        dpkg-deb -x "$deb" tree
    done
    modules=$(find tree -path '*lib/modules/*' -prune -print | head -n 1)
    [ -d "$modules/kernel" ] || die "$package has no module tree"
    find "$modules" -name '*.ko.xz' -print0 | xargs -0 -r -n 64 -P 2 xz -d
    # From Linux 7.2 on vmlinuz is among the modules.
    boot=tree/boot
    [ -d "$boot" ] || boot=$modules
    dpkg-deb -W --showformat='${Package} ${Version}\n' "$(ls linux-image-*.deb)" >VERSION
    rm -rf "$stock/tree"
    mv tree "$stock/tree"
    ln -sfn "$modules" "$stock/modules"
    ln -sfn "$boot" "$stock/boot"
    rm -rf "$apt"
    # Last: when VERSION is there, all the rest is complete.
    mv VERSION "$stock/VERSION"
}

main() {
    if [ "$kernel" = 6.1 ] && { [ -L "$stock" ] || [ ! -e "$stock" ]; } && [ ! -s "$stock/VERSION" ]; then
        sh "$root/scripts/stock.sh"
        ln -sfn stock "$stock"
    fi
    if [ -s "$stock/VERSION" ] && [ -d "$stock/modules/" ]; then
        echo "kernel $kernel: $(cat "$stock/VERSION") (target/stock-$kernel)"
        return
    fi
    need_tools apt-get apt-cache dpkg-deb find sed xz
    work_below "$stock"
    fetch
    unpack
    echo "kernel $kernel: $(cat "$stock/VERSION") (target/stock-$kernel)"
}

main
