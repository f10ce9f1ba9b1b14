#!/bin/sh
# Builds e1000 from Debian's linux-source-6.1 out of tree, rewritten on the way.
#
#   examples/e1000/build.sh [DIRECTORY]
#
# Needs `make stock` (headers) and target/debug/twin or TWIN. Leaves e1000.ko and,
# built the same way by the plain compiler, original/e1000.ko in DIRECTORY
# (default target/examples/e1000). A warning that only the rewritten build has is an
# error, and so is a module that `twin verify` refuses.
set -eu

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
root=$(CDPATH='' cd -- "$here/../.." && pwd)
directory=${1:-$root/target/examples/e1000}
headers=$(CDPATH='' cd -P -- "$root/target/stock/headers" && pwd -P)
twin=${TWIN:-$root/target/debug/twin}
compiler=${COMPILER:-gcc-12}
report=$directory/report.jsonl

die() {
    printf 'build.sh: %s\n' "$*" >&2
    exit 1
}

# The driver's directory of the package, which is fetched but not installed.
source_of_driver() {
    kept=$root/target/programs/linux-source
    driver=$kept/linux-source-6.1/drivers/net/ethernet/intel/e1000
    [ ! -e "$kept/complete" ] || return 0
    mkdir -p "$kept"
    echo "fetching linux-source-6.1 ..." >&2
    (cd "$kept" && rm -f ./*.deb && apt-get -q download linux-source-6.1 >apt.log 2>&1) ||
        die "cannot fetch linux-source-6.1: see $kept/apt.log"
    dpkg-deb --fsys-tarfile "$kept"/linux-source-6.1_*.deb |
        tar -xO ./usr/src/linux-source-6.1.tar.xz | xz -dc |
        tar -C "$kept" -x linux-source-6.1/drivers/net/ethernet/intel/e1000
    rm -f "$kept"/*.deb
    touch "$kept/complete"
}

# build DIRECTORY CC
build() {
    make -C "$headers" M="$1" CONFIG_E1000=m CC="$2" modules >"$1/build.log" 2>&1 ||
        die "it does not build: see $1/build.log"
    # Lines that tell what is being done, and what every build without a kernel
    # tree's vmlinux is told.
    grep -v '^ *\(CC\|LD\|MODPOST\|BTF\|SHIPPED\|COPY\)\|^make\|^Skipping BTF\|^warning: the compiler' \
        "$1/build.log" >"$1/warnings" || true
}

source_of_driver
rm -rf "$directory"
mkdir -p "$directory/original"
cp "$driver"/*.[ch] "$driver/Makefile" "$directory/original"
cp "$driver"/*.[ch] "$driver/Makefile" "$directory"

build "$directory/original" "$compiler"
build "$directory" "$twin cc --target linux --report $report -- $compiler"
sed "s#$directory/original#$directory#g" "$directory/original/warnings" |
    diff - "$directory/warnings" >&2 || die "the rewritten build has other warnings"
# The proof is about the module as kbuild left it, objtool's tables included.
"$twin" verify --target linux "$directory/e1000.ko"
echo "$directory/e1000.ko"
