#!/bin/sh
# Compiles each program of tests/programs/features with compilers and through `twin cc`,
# runs both, and compares what they print and how they end.
#
#   scripts/features.sh sample        at -O0 and -O2
#   scripts/features.sh all           at five levels, each with every line of tests/programs/shapes.txt
#   scripts/features.sh level LEVEL "OPTIONS"
#
# Comments at the beginning of a program say more: `flags:` are its own options, `compilers:`
# those that have what it uses (gcc or clang), and `refused:` that it is refused with a
# message that has these words. What a compiler cannot do itself is skipped. Ends with the
# number of builds; fails if a program differed.
#
#   TWIN        the program (default target/debug/twin)
#   COMPILERS   default gcc and this release's clang
#   FEATURES    the programs' names (default all)
#   ACCESSES    which accesses are translated (default all; or stores)
set -u

root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
. "$root/scripts/release.sh"
twin=$(realpath -m -- "${TWIN:-$root/target/debug/twin}")
work=$(mktemp -d "${TMPDIR:-/tmp}/twin-features-XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
same=0 refused=0 skipped=0 failed=0

# said WORD FILE: what a program's comment says.
said() {
    sed -n "s,^/\* $1: \(.*\) \*/\$,\1,p" "$2" | head -n 1
}

# one COMPILER "OPTIONS" FILE
one() {
    flags="$2 $(said flags "$3")"
    words=$(said refused "$3")
    if [ -z "$words" ] || [ "${ACCESSES:-all}" = stores ]; then
        line=$(sh "$root/scripts/torture.sh" "$twin" "$work/report" "$1" "$flags" "$3")
        case $line in
        same*) same=$((same + 1)) ;;
        skipped*)
            skipped=$((skipped + 1))
            echo "skipped: $1 $flags: $(basename "$3")"
            ;;
        *)
            failed=$((failed + 1))
            echo "WRONG: $1 $flags: $line"
            ;;
        esac
        return
    fi
    # shellcheck disable=SC2086
    if "$twin" cc -- "$1" $flags -w "$3" -o "$work/program" >"$work/log" 2>&1; then
        failed=$((failed + 1))
        echo "WRONG: $1 $flags: $(basename "$3"): it is not refused"
    elif grep -q -e "$words" "$work/log"; then
        refused=$((refused + 1))
    else
        failed=$((failed + 1))
        echo "WRONG: $1 $flags: $(basename "$3"): $(head -n 2 "$work/log")"
    fi
}

# with COMPILER "OPTIONS": every program.
with() {
    case $1 in
    gcc*) kind=gcc ;;
    *) kind=clang ;;
    esac
    for name in ${FEATURES:-$(cd "$root/tests/programs/features" && echo *.c)}; do
        file=$root/tests/programs/features/$name
        case $(said compilers "$file") in
        '' | *$kind*) one "$1" "$2" "$file" ;;
        esac
    done
}

[ -x "$twin" ] || {
    echo "features.sh: no $twin: build it first" >&2
    exit 1
}
for compiler in ${COMPILERS:-gcc $release_clang}; do
    command -v "$compiler" >/dev/null || {
        echo "$compiler is not installed: skipped"
        continue
    }
    case ${1:-sample} in
    sample)
        with "$compiler" -O0
        with "$compiler" -O2
        ;;
    all)
        case $compiler in
        gcc*) own=gcc ;;
        *) own=clang ;;
        esac
        sed -n "s/^\($own\|all\) *| *//p" "$root/tests/programs/shapes.txt" >"$work/shapes"
        for level in -O0 -O1 -O2 -O3 -Os; do
            while read -r shape; do
                with "$compiler" "$level $shape" </dev/null
            done <"$work/shapes"
        done
        ;;
    level) with "$compiler" "${2:?a level} ${3:-}" ;;
    *)
        echo 'features.sh: say sample, all, or level' >&2
        exit 1
        ;;
    esac
done
echo "features: $same the same, $refused refused, $skipped skipped, $failed wrong"
[ "$failed" -eq 0 ]
