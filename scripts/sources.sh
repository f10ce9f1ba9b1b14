#!/bin/sh
# Fetches source packages of Debian 12 by name and unpacks them; installs nothing.
#
#   scripts/sources.sh PACKAGE...
#
# Each is unpacked to target/programs/PACKAGE. Existing ones are not fetched again.
#
#   TWIN_DEBIAN_MIRROR  mirror (default http://deb.debian.org/debian)
set -eu

root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
programs=$root/target/programs
apt=$programs/apt

die() {
    printf 'sources.sh: %s\n' "$*" >&2
    exit 1
}

. "$root/scripts/apt.sh"

download() {
    # shellcheck disable=SC2046,SC2086
    (cd "$work" && apt-get $opts -q source --download-only --only-source "$1" >apt.log 2>&1)
}

# Whether the original tarball is there, as Debian's description has its sum. A mirror may lack
# its authors' signature beside it.
has_tarball() {
    (cd "$work" && set -- ./*.dsc && [ -e "$1" ] && awk '/^[^ ]/ { sums = /^Checksums-Sha256:/ }
        sums && $3 ~ /\.orig\.tar\.[a-z0-9]+$/ { print $1 "  " $3 }' ./*.dsc |
        sha256sum -c --status 2>/dev/null)
}

fetch() {
    package=$1
    [ ! -e "$programs/$package/.complete" ] || return 0
    work=$programs/$package.new
    rm -rf "$work" "${programs:?}/$package"
    mkdir -p "$work"
    # An index of updates may name what the mirror has no more: then the release's own.
    download "$package" || has_tarball || download "$package/bookworm" || has_tarball ||
        die "cannot fetch the source of $package: $(tail -n 1 "$work/apt.log")"
    # The original tarball alone: what Debian changes is for Debian's builds.
    tarball=$(find "$work" -name '*.orig.tar.*' ! -name '*.asc' | head -n 1)
    [ -n "$tarball" ] || die "$package has no original tarball"
    mkdir "$work/source"
    tar -C "$work/source" --strip-components=1 -xf "$tarball"
    mv "$work/source" "$programs/$package"
    rm -rf "$work"
    touch "$programs/$package/.complete"
}

mkdir -p "$programs"
opts="$(private_options) $(bookworm_options deb-src)"
missing=
for package; do
    [ -e "$programs/$package/.complete" ] || missing="$missing $package"
done
[ -n "$missing" ] || exit 0
# shellcheck disable=SC2086
apt-get $opts -q update >"$apt/update.log" 2>&1 || die "apt-get update failed: see $apt/update.log"
for package in $missing; do
    echo "fetching the source of $package ..."
    fetch "$package"
done
