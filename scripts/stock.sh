#!/bin/sh
# Fetches the current stock Debian 12 amd64 kernel, without installing it.
#
#   scripts/stock.sh
#
# Leaves, all below target/stock/:
#   e1000.ko   the stock e1000 module, decompressed
#   modules    -> the package's module tree (kernel/drivers/...)
#   boot       -> the package's /boot (vmlinuz, config)
#   VERSION    package and version that this is
#
# apt names the package: linux-image-amd64 of Debian 12 depends on it. The lists of
# this system are used if they have it; otherwise private lists are fetched below
# target/stock/apt, which needs no privileges. If VERSION exists, apt is not called;
# remove target/stock to start over.
#
#   TWIN_DEBIAN_MIRROR  mirror for lists of our own
#                       (default http://deb.debian.org/debian)
set -eu

root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
stock=$root/target/stock
apt=$stock/apt

die() {
    printf 'stock.sh: %s\n' "$*" >&2
    exit 1
}

complete() {
    [ -s "$stock/VERSION" ] && [ -s "$stock/e1000.ko" ] && [ -d "$stock/modules/" ]
}

. "$root/scripts/apt.sh"

# ---- Which apt -------------------------------------------------------------

# The image that linux-image-amd64 depends on, by apt with options "$@"; nothing
# unless it is Debian 12's.
image() {
    apt-cache "$@" depends linux-image-amd64 2>/dev/null |
        sed -n 's/^ *Depends: \(linux-image-6\.1\.[^ ]*-amd64\)$/\1/p' | head -n 1
}

# Downloads the image package into the current directory by apt with options "$@".
download() {
    package=$(image "$@")
    [ -n "$package" ] || return 1
    echo "fetching $package (some 70 MB) ..."
    # On a terminal apt shows how far it is.
    if [ -t 1 ]; then
        apt-get "$@" download "$package" 2>apt.log
    else
        apt-get "$@" -q download "$package" >apt.log 2>&1
    fi
}

# As download, with fresh lists below $apt. Sources that cannot be reached do not
# matter as long as the image is found.
download_with_update() {
    echo "asking apt for Debian 12's current kernel ..."
    apt-get "$@" -q update >apt.log 2>&1 || true
    download "$@"
}

fetch() {
    plain="-oAPT::Sandbox::User=root -oAcquire::Retries=3"
    # shellcheck disable=SC2046,SC2086
    download $plain && return
    if grep -q '^VERSION_CODENAME=bookworm' /etc/os-release 2>/dev/null; then
        # shellcheck disable=SC2046
        download_with_update $(private_options) && return
    fi
    # shellcheck disable=SC2046
    download_with_update $(private_options) $(bookworm_options deb) && return
    tail -n 5 apt.log >&2
    die "cannot fetch the Debian 12 kernel (above: apt's last words); check the network, or set TWIN_DEBIAN_MIRROR"
}

# ---- Unpack ----------------------------------------------------------------

# The module `e1000` as it is in the tree, decompressed to standard output.
e1000() {
    module=$(find "$1" -name 'e1000.ko*' | head -n 1)
    case $module in
        *.ko) cat "$module" ;;
        *.xz) xz -dc "$module" ;;
        *.gz) gzip -dc "$module" ;;
        *.zst) zstd -dc "$module" ;;
        *) die "the package has no e1000.ko; remove $stock and try again" ;;
    esac
}

unpack() {
    deb=$(ls linux-image-*.deb)
    dpkg-deb -x "$deb" tree
    # Debian 12 has lib/modules, later releases usr/lib/modules.
    modules=$(find tree -path '*lib/modules/*' -prune -print | head -n 1)
    [ -d "$modules/kernel" ] || die "$deb has no module tree"
    e1000 "$modules" >e1000.ko
    dpkg-deb -W --showformat='${Package} ${Version}\n' "$deb" >VERSION
    rm -rf "$stock/tree"
    mv tree "$stock/tree"
    ln -sfn "$modules" "$stock/modules"
    ln -sfn tree/boot "$stock/boot"
    mv e1000.ko "$stock/e1000.ko"
    rm -rf "$apt"
    # Last: when VERSION is there, all the rest is complete.
    mv VERSION "$stock/VERSION"
}

main() {
    if complete; then
        echo "stock kernel: $(cat "$stock/VERSION") (target/stock)"
        return
    fi
    need_tools apt-get apt-cache dpkg-deb find sed
    work_below "$stock"
    fetch
    unpack
    complete || die "the package was fetched, but target/stock is not complete; remove it and try again"
    echo "stock kernel: $(cat "$stock/VERSION") (target/stock)"
}

main "$@"
