#!/bin/sh
# Compiles one C program with a compiler and through `twin cc`, runs both, and
# compares what they print and how they end.
#
#   scripts/torture.sh TWIN REPORT COMPILER "FLAGS" FILE.c
#
# ACCESSES says which accesses are translated (default all).
#
# Prints a line "same", "skipped" (the compiler itself cannot, or the program does
# not end well) or "DIFFERENT", with the file's name.
twin=$1 report=$2 compiler=$3 flags=$4 file=$5
work=$(mktemp -d "${TMPDIR:-/tmp}/twin-torture-XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
cd "$(dirname "$file")" || exit 1
name=$(basename "$file")
# Names of the same length: they are on the stack, whose addresses may be printed.
mkdir "$work/a" "$work/b"

# Addresses of the program itself may be printed: both at the same place. What the
# shell says of a program that a signal ended is in its status, too. It is dropped by `exec`
# and not by braces around: dash 0.5.12 takes `{ (a) >b; } 2>c` for `{ (a); } 2>c`.
run() {
    exec 3>&2 2>/dev/null
    (ulimit -t 20; cd "$work" && exec timeout 60 setarch -R "$1") >"$2" 2>&1 </dev/null 3>&-
    status=$?
    exec 2>&3 3>&-
    echo "status $status" >>"$2"
}

# shellcheck disable=SC2086
"$compiler" $flags -w "$name" -o "$work/a/program" -lm >"$work/original.log" 2>&1 || {
    echo "skipped $name"
    exit 0
}
run "$work/a/program" "$work/original.out"
grep -q '^status 0$' "$work/original.out" || {
    echo "skipped $name"
    exit 0
}
# shellcheck disable=SC2086
"$twin" cc --accesses "${ACCESSES:-all}" --report "$report" -- "$compiler" $flags -w "$name" -o "$work/b/program" -lm \
    >"$work/twin.log" 2>&1 || {
    echo "DIFFERENT $name: $(head -n 1 "$work/twin.log")"
    exit 0
}
run "$work/b/program" "$work/twin.out"
if cmp -s "$work/original.out" "$work/twin.out"; then
    echo "same $name"
else
    echo "DIFFERENT $name: $(diff "$work/original.out" "$work/twin.out" | head -n 2 | tr '\n' ' ')"
fi
