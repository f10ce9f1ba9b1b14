#!/bin/sh
# Rewrites each line of tests/programs/snippets.txt as a function: as an object and as text,
# for each target. Each is accepted, verified and assembled again, or refused with a reason
# and a place: never an internal error, never a line that the assembler does not take. Text
# and object agree for a module.
#
#   scripts/snippets.sh [-v]    -v lists each with what was said
#
#   TWIN    the program (default target/debug/twin)
set -u

root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
twin=$(realpath -m -- "${TWIN:-$root/target/debug/twin}")
work=$(mktemp -d "${TMPDIR:-/tmp}/twin-snippets-XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
accepted=0 refused=0 failed=0

# judge WHAT STATUS: counts one run, whose messages are in $work/log.
judge() {
    if [ "$2" -eq 0 ]; then
        accepted=$((accepted + 1))
    elif [ "$2" -eq 1 ] && ! grep -q 'internal error' "$work/log" && grep -q '\[[a-z-]*\]; ' "$work/log"; then
        refused=$((refused + 1))
    else
        failed=$((failed + 1))
        printf 'WRONG: %s: %s: %s\n' "$snippet" "$1" "$(head -n 2 "$work/log")"
    fi
    [ "${verbose:-}" != -v ] || printf '%s: %s: %s %s\n' "$snippet" "$1" "$2" "$(head -n 1 "$work/log")"
}

verbose=${1:-}
[ -x "$twin" ] || {
    echo "snippets.sh: no $twin: build it first" >&2
    exit 1
}
grep -v '^#' "$root/tests/programs/snippets.txt" >"$work/lines"
while read -r snippet; do
    {
        printf '\t.text\n\t.globl f\n\t.type f,@function\nf:\n'
        printf '%s\n' "$snippet" | tr ';' '\n'
        printf '\tret\n\t.size f,.-f\n\t.section .note.GNU-stack,"",@progbits\n'
    } >"$work/x.s"
    as "$work/x.s" -o "$work/x.o" 2>"$work/log" || {
        failed=$((failed + 1))
        echo "WRONG: $snippet: the assembler does not take it: $(sed -n 2p "$work/log")"
        continue
    }
    "$twin" rewrite "$work/x.o" -o "$work/o.o" >"$work/log" 2>&1
    judge hypervisor $?
    "$twin" rewrite --target linux "$work/x.o" -o "$work/o.o" >"$work/log" 2>&1
    linux=$?
    judge linux $linux
    "$twin" rewrite --target linux "$work/x.s" -o "$work/o.s" >"$work/log" 2>&1
    text=$?
    judge 'linux, text' $text
    "$twin" rewrite --target process "$work/x.s" -o "$work/o.s" >"$work/log" 2>&1
    status=$?
    judge process $status
    [ "$status" -ne 0 ] || as "$work/o.s" -o "$work/o.o" 2>"$work/log" || {
        failed=$((failed + 1))
        echo "WRONG: $snippet: its rewritten text: $(sed -n 2p "$work/log")"
    }
done <"$work/lines"
echo "$(wc -l <"$work/lines") snippets: $accepted accepted, $refused refused, $failed wrong"
[ "$failed" -eq 0 ]
