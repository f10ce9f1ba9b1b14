#!/bin/sh
# Builds real programs through `twin cc`, runs their own tests, and compares their
# output with that of the unrewritten builds.
#
#   scripts/programs.sh sample    zlib at -O2 with gcc
#   scripts/programs.sh all       zlib, lz4, sqlite and gcc's torture programs, at
#                                 -O0, -O2 and -O3, with gcc and clang (an hour)
#   scripts/programs.sh text DIR  leaves DIR/sqlite-gcc{-O0,-O2,-O3}.s, for benchmarks
#
# Sources are fetched by package name, into target/programs. Prints for each program
# what was rewritten and that it behaves like its unrewritten build, and at the end the
# sums; fails at the first difference.
#
#   TWIN        the program (default target/debug/twin)
#   COMPILERS   default gcc and this release's clang, those that are installed
#   LEVELS      default "-O0 -O2 -O3"
#   PROGRAMS    default "zlib lz4 sqlite torture"
#   ACCESSES    which accesses are translated (default all; or stores)
#   EACH        every how many of gcc's torture programs are run (default 1: all)
set -eu

root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
. "$root/scripts/release.sh"
programs=$root/target/programs
twin=$(realpath -m -- "${TWIN:-$root/target/debug/twin}")
mode=${1:-sample}
export ACCESSES="${ACCESSES:-all}"
accesses=$ACCESSES
work=$programs/work

die() {
    printf 'programs.sh: %s\n' "$*" >&2
    exit 1
}

# ---- The programs --------------------------------------------------------------

# begin PROGRAM COMPILER LEVEL: counts code rewritten from here on as this program's.
begin() {
    report=$work/$1-$2$3.jsonl
    reports="$reports $report"
    : >"$report"
}

counted() {
    sh "$root/scripts/counted.sh" "$@"
}

# zlib COMPILER LEVEL: its own `make test`, static and shared.
zlib() {
    begin zlib "$1" "$2"
    for kind in original twin; do
        build=$work/zlib-$1$2-$kind
        rm -rf "$build"
        cp -r "$programs/zlib" "$build"
        cc=$1
        [ $kind = original ] || cc="$twin cc --accesses $accesses --report $report -- $1"
        (cd "$build" && CC=$cc CFLAGS="$2 -D_LARGEFILE64_SOURCE=1" ./configure && make -j2 test) \
            >"$build.log" 2>&1 || die "zlib: its tests fail: see $build.log"
        grep '^[a-z].*: \|\*\*\* zlib' "$build.log" | sort >"$build.out" || true
        "$build/minigzip" <"$programs/zlib/deflate.c" >"$build.gz"
    done
    same zlib "$1" "$2" "$work/zlib-$1$2-original.gz" "$work/zlib-$1$2-twin.gz"
    [ "$(grep -c 'test OK' "$work/zlib-$1$2-twin.log")" -eq 3 ] ||
        die "zlib: not all of its three tests passed: see $work/zlib-$1$2-twin.log"
}

# lz4 COMPILER LEVEL: compresses at several levels, and back; its own fuzzer.
lz4() {
    begin lz4 "$1" "$2"
    for kind in original twin; do
        build=$work/lz4-$1$2-$kind
        rm -rf "$build"
        cp -r "$programs/lz4" "$build"
        cc=$1
        [ $kind = original ] || cc="$twin cc --accesses $accesses --report $report -- $1"
        (make -C "$build/programs" CC="$cc" CFLAGS="$2" lz4 &&
            make -C "$build/tests" CC="$cc" CFLAGS="$2" fuzzer) >"$build.log" 2>&1 ||
            die "lz4: it does not build: see $build.log"
        : >"$build.lz4"
        for effort in 1 3 9 12; do
            "$build/programs/lz4" -$effort -c "$programs/lz4/lib/lz4hc.c" >"$build.one"
            "$build/programs/lz4" -dc "$build.one" | cmp -s - "$programs/lz4/lib/lz4hc.c" ||
                die "lz4: decompresses to something else"
            cat "$build.one" >>"$build.lz4"
        done
        "$build/tests/fuzzer" -s5 -i20 >"$build.fuzz" 2>&1 || die "lz4: its fuzzer fails"
    done
    same lz4 "$1" "$2" "$work/lz4-$1$2-original.lz4" "$work/lz4-$1$2-twin.lz4"
}

# sqlite COMPILER LEVEL: the amalgamation and a workload of queries.
sqlite() {
    begin sqlite "$1" "$2"
    amalgamation=$(echo "$programs"/sqlite/vendor/libsqlite3-sys-*/sqlite3)
    for kind in original twin; do
        cc=$1
        [ $kind = original ] || cc="$twin cc --accesses $accesses --report $report -- $1"
        out=$work/sqlite-$1$2-$kind
        # shellcheck disable=SC2086
        $cc $2 -w -DSQLITE_THREADSAFE=1 -I"$amalgamation" "$amalgamation/sqlite3.c" \
            "$root/tests/programs/queries.c" -o "$out" -lm -lpthread -ldl >"$out.log" 2>&1 ||
            die "sqlite: it does not build: see $out.log"
        "$out" >"$out.out" 2>&1 || die "sqlite: the queries fail: see $out.out"
    done
    same sqlite "$1" "$2" "$work/sqlite-$1$2-original.out" "$work/sqlite-$1$2-twin.out"
}

# torture COMPILER LEVEL: gcc's programs that test execution.
torture() {
    begin torture "$1" "$2"
    log=$work/torture-$1$2.log
    find "$programs/gcc-torture" -name '*.c' | sort | awk "NR % ${EACH:-1} == 0" |
        xargs -P2 -I{} sh "$root/scripts/torture.sh" "$twin" "$report" "$1" "$2" {} >"$log"
    ! grep -q '^DIFFERENT' "$log" || die "torture $1 $2: $(grep '^DIFFERENT' "$log")"
    echo "torture $1 $2: $(grep -c '^same' "$log") same, $(grep -c '^skipped' "$log") not run:" \
        "$(counted "$report")"
}

same() {
    cmp -s "$4" "$5" || die "$1 $2 $3: $4 and $5 differ"
    echo "$1 $2 $3: same: $(counted "$report")"
}

# ---- Sources -------------------------------------------------------------------

# The amalgamation comes with a crate, which cargo knows to fetch.
fetch_sqlite() {
    [ ! -d "$programs/sqlite/vendor" ] || return 0
    mkdir -p "$programs/sqlite/src"
    : >"$programs/sqlite/src/lib.rs"
    printf '%s\n' '[package]' 'name = "fetch"' 'version = "0.0.0"' 'edition = "2024"' \
        '[dependencies]' 'libsqlite3-sys = { version = "=0.30.1", features = ["bundled"] }' \
        '[workspace]' >"$programs/sqlite/Cargo.toml"
    (cd "$programs/sqlite" && cargo vendor -q --versioned-dirs vendor >/dev/null)
}

fetch_torture() {
    [ ! -d "$programs/gcc-torture" ] || return 0
    sh "$root/scripts/sources.sh" gcc-12
    mkdir "$programs/gcc-torture.new"
    tar -C "$programs/gcc-torture.new" --strip-components=5 --wildcards \
        -xf "$programs"/gcc-12/gcc-12*.tar.xz '*/gcc/testsuite/gcc.c-torture/execute/*.c'
    mv "$programs/gcc-torture.new" "$programs/gcc-torture"
}

# text DIRECTORY: the amalgamation as gcc's assembly.
text() {
    fetch_sqlite
    mkdir -p "$1"
    for level in -O0 -O2 -O3; do
        [ -s "$1/sqlite-gcc$level.s" ] ||
            gcc -S $level -w "$programs"/sqlite/vendor/libsqlite3-sys-*/sqlite3/sqlite3.c -o "$1/sqlite.new"
        [ ! -e "$1/sqlite.new" ] || mv "$1/sqlite.new" "$1/sqlite-gcc$level.s"
    done
}

# ---- The run -------------------------------------------------------------------

if [ "$mode" = text ]; then
    text "${2:?a directory}"
    exit
fi
[ -x "$twin" ] || die "no $twin: build it first"
mkdir -p "$work"
reports=
case $mode in
sample)
    sh "$root/scripts/sources.sh" zlib
    zlib gcc -O2
    ;;
all)
    sh "$root/scripts/sources.sh" zlib lz4
    fetch_sqlite
    fetch_torture
    for compiler in ${COMPILERS:-gcc $release_clang}; do
        command -v "$compiler" >/dev/null || {
            echo "$compiler is not installed: skipped"
            continue
        }
        for level in ${LEVELS:--O0 -O2 -O3}; do
            for program in ${PROGRAMS:-zlib lz4 sqlite torture}; do
                "$program" "$compiler" "$level"
            done
        done
    done
    ;;
*) die "say sample, all, or text DIR" ;;
esac
# shellcheck disable=SC2086
echo "in all: $(counted $reports)"
