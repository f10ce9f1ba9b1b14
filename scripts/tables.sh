#!/bin/sh
# Rewrites the hand-written assembly of openssl, whose tables stand among its code, and compares
# what a program gets from it with what it gets from the files as they are.
#
#   scripts/tables.sh
#
# tests/programs/tables.txt lists the files, and of those that are refused the reason, in
# brackets at the end of a refusal. Another refusal fails, and so does one that is gone: then
# the list is to be changed. Prints what was rewritten, and how many results are the same.
# openssl's source is fetched into target/programs; the text is made by its own scripts.
#
#   TWIN        the program (default target/debug/twin)
set -eu

root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
programs=$root/target/programs
twin=$(realpath -m -- "${TWIN:-$root/target/debug/twin}")
list=$root/tests/programs/tables.txt
work=$programs/tables

die() {
    printf 'tables.sh: %s\n' "$*" >&2
    exit 1
}

# generated: the list's files, beside each other in $work/text.
generated() {
    files=$(sed 's/#.*//; s/ .*//' "$list")
    cp -a "$programs/openssl" "$work/source"
    # shellcheck disable=SC2086
    (cd "$work/source" && ./Configure linux-x86_64 no-shared && make $files) \
        >"$work/make.log" 2>&1 </dev/null || die "openssl makes no assembly: see $work/make.log"
    for file in $files; do
        cp "$work/source/$file" "$work/text"
    done
    rm -rf "$work/source"
}

# one NAME REASON: assembles it both ways; the same object if it is refused for that reason.
one() {
    gcc -c "$work/text/$1.s" -o "$work/original/$1.o"
    if "$twin" rewrite --target process "$work/text/$1.s" -o "$work/twin/$1.s" \
        >"$work/twin/$1.log" 2>&1; then
        [ -z "$2" ] || die "$1 is rewritten, and $list says that it is refused"
        gcc -c "$work/twin/$1.s" -o "$work/twin/$1.o"
        rewritten=$((rewritten + 1))
    else
        said=$(sed -n 's/.*\[\([a-z-]*\)\].*/\1/p' "$work/twin/$1.log" | head -n 1)
        [ -n "$2" ] && [ "$said" = "$2" ] ||
            die "$1 is refused: $(head -n 1 "$work/twin/$1.log")"
        echo "$1: refused: $(head -n 1 "$work/twin/$1.log" | sed 's/^[^:]*: //; s/;.*//')"
        cp "$work/original/$1.o" "$work/twin/$1.o"
        refused=$((refused + 1))
    fi
}

# run KIND: links and runs the program. One of the functions that nobody calls needs more of openssl.
run() {
    gcc -no-pie "$work/tables.o" "$work/$1"/*.o -Wl,--unresolved-symbols=ignore-all \
        -o "$work/tables-$1" >"$work/$1.log" 2>&1 || die "it does not link: see $work/$1.log"
    "$work/tables-$1" >"$work/$1.out" || die "$work/tables-$1 fails"
}

[ -x "$twin" ] || die "no $twin: build it first"
sh "$root/scripts/sources.sh" openssl
rm -rf "$work"
mkdir -p "$work/text" "$work/original" "$work/twin"
generated
rewritten=0 refused=0
while read -r file reason; do
    case $file in '' | '#'*) continue ;; esac
    one "$(basename "$file" .s)" "$reason"
done <"$list"
gcc -O1 -w -c "$root/tests/programs/tables.c" -o "$work/tables.o"
run original
run twin
[ -s "$work/original.out" ] || die "it prints nothing"
cmp "$work/original.out" "$work/twin.out" || die "DIFFERENT: $work/original.out and $work/twin.out"
echo "openssl's assembly: $rewritten files rewritten, $refused refused;" \
    "$(wc -l <"$work/twin.out") lines of results, the same"
