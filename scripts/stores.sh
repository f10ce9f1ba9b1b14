#!/bin/sh
# What `--accesses stores` costs beside `--accesses all`: in a module, the instructions that
# are translated and the bytes of code; in a program, the instructions that are executed.
#
#   scripts/stores.sh [MODULE.ko]     default: e1000 of the stock package
#
# The program is zlib's minigzip at -O2 with gcc, which compresses one of zlib's own
# sources and takes the result apart again; valgrind counts. Counts repeat exactly.
#
#   TWIN        the program (default target/debug/twin)
set -eu

root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
twin=$(realpath -m -- "${TWIN:-$root/target/debug/twin}")
module=${1:-$root/target/stock/e1000.ko}
programs=$root/target/programs
work=$programs/stores

die() {
    printf 'stores.sh: %s\n' "$*" >&2
    exit 1
}

[ -x "$twin" ] || die "no $twin: build it first"
[ -e "$module" ] || die "no $module: make stock fetches the default"
sh "$root/scripts/setup.sh" valgrind:valgrind
rm -rf "$work"
mkdir -p "$work"

# code FILE: bytes in its code sections.
code() {
    size -A -d "$1" | awk '$1 ~ /^\.(text|init\.text|exit\.text|twin\.text)/ { sum += $2 } END { print sum }'
}

# counted MODE: accesses of a module that are translated, by `twin stats`, all kinds but the
# frame's, which is not.
counted() {
    "$twin" stats --accesses "$1" "$module" |
        awk '$1 ~ /^(heap|string|bitstring|push_pop)$/ { gsub(",", "", $2); sum += $2 } END { print sum }'
}

echo "$(basename "$module"): $(code "$module") bytes of code"
for mode in all stores; do
    "$twin" rewrite --target linux --accesses $mode "$module" -o "$work/$mode.ko" 2>/dev/null
    "$twin" verify --target linux --accesses $mode "$work/$mode.ko" >"$work/$mode.verdict"
    echo "  $mode: $(counted $mode) accesses through registers, $(code "$work/$mode.ko") bytes of code"
done

sh "$root/scripts/sources.sh" zlib
for mode in original all stores; do
    build=$work/$mode
    cp -r "$programs/zlib" "$build"
    cc=gcc
    [ $mode = original ] || cc="$twin cc --accesses $mode --report $work/$mode.jsonl -- gcc"
    (cd "$build" && CC=$cc CFLAGS="-O2 -D_LARGEFILE64_SOURCE=1" ./configure --static && make -j2 minigzip) \
        >"$build.log" 2>&1 || die "zlib does not build: see $build.log"
done
# run MODE INPUT OUTPUT ARGUMENTS: instructions that minigzip executes.
run() {
    mode=$1 input=$2 output=$3
    shift 3
    valgrind --tool=callgrind --callgrind-out-file=/dev/null --log-file="$work/count" \
        "$work/$mode/minigzip" "$@" <"$input" >"$output"
    sed -n 's/.*Collected : \([0-9]*\)$/\1/p' "$work/count"
}
source=$programs/zlib/deflate.c
for mode in original all stores; do
    there=$(run $mode "$source" "$work/$mode.gz")
    back=$(run $mode "$work/$mode.gz" "$work/$mode.out" -d)
    cmp -s "$work/original.gz" "$work/$mode.gz" || die "$mode compresses to something else"
    cmp -s "$source" "$work/$mode.out" || die "$mode does not give back what it compressed"
    case $mode in
    original) first=$there second=$back sites= ;;
    *) sites=" ($(sh "$root/scripts/counted.sh" "$work/$mode.jsonl"))" ;;
    esac
    echo "$mode $there $first $back $second" | awk -v sites="$sites" '{
        printf "zlib gcc -O2 %s: compressing %d instructions (%.2f), expanding %d (%.2f)%s\n",
            $1, $2, $2 / $3, $4, $4 / $5, sites
    }'
done
