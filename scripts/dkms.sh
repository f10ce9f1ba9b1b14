#!/bin/bash
# Builds DKMS packages of Debian 12 by kbuild, once with the plain compiler and once
# with `twin cc` as CC, and verifies every module as kbuild leaves it.
#
#   scripts/dkms.sh sample    two small packages (some seconds)
#   scripts/dkms.sh all       every package below (ten minutes)
#
# The packages are fetched by apt and unpacked, not installed. Each is built as its own
# dkms.conf says, with CC and nothing else added. The plainly built modules are also
# rewritten as objects. Leaves, below target/dkms:
#   NAME/                the unpacked package
#   plain/ twin/         its source, built: NAME/VERSION/build
#   report.jsonl         what `twin cc` rewrote, a line for each source (of the sample:
#                        sample.jsonl); the test
#                        `dkms_is_the_same_by_text_and_by_object` of svm-rewrite compares
#                        both ways by it, function by function
#
#   TWIN      the program (default target/debug/twin)
#   COMPILER  default gcc-12, which the stock kernel is made with
#   PACKAGES  others than those below
set -eu

root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
mkdir -p "$root/target/dkms"
tree=$(CDPATH='' cd -P -- "$root/target/dkms" && pwd -P)
apt=$tree/apt
twin=$(realpath -m -- "${TWIN:-$root/target/debug/twin}")
compiler=${COMPILER:-gcc-12}
report=$tree/report.jsonl

die() {
    printf 'dkms.sh: %s\n' "$*" >&2
    exit 1
}

# shellcheck source=scripts/apt.sh
. "$root/scripts/apt.sh"

case ${1:-sample} in
sample)
    packages="acpi-call vpoll"
    report=$tree/sample.jsonl
    ;;
all)
    packages="acpi-call adv-17v35x apfs bbswitch dm-writeboost dpdk-kmods evdi gost-crypto
        jool langford lime-forensics nat-rtsp openvpn-dco rapiddisk rtpengine-kernel
        tp-smapi v4l2loopback vpoll xtables-addons xtrx"
    ;;
*) die "say sample or all" ;;
esac
packages=${PACKAGES:-$packages}

# fetch PACKAGE: unpacked to target/dkms/PACKAGE.
fetch() {
    [ ! -e "$tree/$1/.complete" ] || return 0
    local new=$tree/$1.new
    rm -rf "$new" "${tree:?}/$1"
    mkdir -p "$new/deb"
    if [ -z "${options:-}" ]; then
        options="$(private_options) $(bookworm_options deb)"
        # shellcheck disable=SC2086
        apt-get $options -q update >"$apt/update.log" 2>&1 || die "apt-get update failed: see $apt/update.log"
    fi
    # shellcheck disable=SC2086
    (cd "$new/deb" && apt-get $options -q download "$1-dkms" >../apt.log 2>&1) ||
        die "cannot fetch $1-dkms: $(tail -n 1 "$new/apt.log")"
    dpkg-deb -x "$new"/deb/*.deb "$new"
    rm -rf "$new/deb"
    touch "$new/.complete"
    mv "$new" "$tree/$1"
}

# build PACKAGE TREE CC: as dkms does (dkms(8), MAKE[#]), with the stock kernel's headers.
build() (
    dkms_tree=$2
    kernelver=$(basename "$(readlink "$root/target/stock/modules")")
    kernel_source_dir=$(readlink -f "$root/target/stock/headers")
    export kernelver kernel_source_dir
    compiler_for_kbuild=$3
    make() { command make "$@" CC="$compiler_for_kbuild"; }
    conf=$(echo "$tree/$1"/usr/src/*/dkms.conf)
    [ -e "$conf" ] || die "$1-dkms has no dkms.conf"
    set +eu
    # Names are the file's, values may be arrays.
    # shellcheck disable=SC1090
    . "$conf"
    directory=$dkms_tree/$PACKAGE_NAME/$PACKAGE_VERSION/build
    rm -rf "$directory"
    mkdir -p "$directory"
    cp -r "${conf%/*}/." "$directory"
    cd "$directory" || exit 1
    unset MAKEFLAGS
    [ -n "${MAKE[*]}" ] || MAKE[0]="make -C $kernel_source_dir M=$directory"
    eval "${MAKE[0]}" >"$directory/build.log" 2>&1 || {
        tail -n 5 "$directory/build.log" >&2
        die "$1 does not build with $3: see $directory/build.log"
    }
    echo "$directory"
)

[ -x "$twin" ] || die "no $twin: build it first"
[ -e "$root/target/stock/headers/Makefile" ] || die "no target/stock/headers: run make stock"
rm -f "$report"
modules=0
for package in $packages; do
    fetch "$package"
    plain=$(build "$package" "$tree/plain" "$compiler")
    rewritten=$(build "$package" "$tree/twin" "$twin cc --target linux --report $report -- $compiler")
    before=$modules
    while read -r module; do
        [ -e "$rewritten/$module" ] || die "$package: $module was not built through twin cc"
        "$twin" verify --target linux "$rewritten/$module" >"$tree/log" 2>&1 ||
            die "$package: $(head -n 3 "$tree/log")"
        "$twin" rewrite --target linux "$plain/$module" -o "$tree/by-object.ko" 2>"$tree/log" ||
            die "$package, by object: $(head -n 3 "$tree/log")"
        modules=$((modules + 1))
    done < <(cd "$plain" && find . -name '*.ko' | sort)
    [ "$modules" -gt "$before" ] || die "$package has no module"
    echo "$package: $((modules - before)) modules, proved"
done
rm -f "$tree/by-object.ko" "$tree/log"
echo "$modules modules of $(echo $packages | wc -w) packages"
