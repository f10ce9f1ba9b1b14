#!/bin/sh
# Compiles one program through `twin cc` with each option of tests/programs/options.txt,
# whole and with either half rewritten, and compares what it prints with the unrewritten
# build: callers and callees must agree about registers.
#
#   scripts/options.sh sample    the options with a star, with this release's gcc and clang
#   scripts/options.sh all       all options and compilers, those installed
#
# Installs nothing. What a compiler cannot do itself is reported as skipped. Ends with the
# number of programs that were the same and of options that were refused as they must be;
# fails if one was not.
#
#   TWIN       the program (default target/debug/twin)
#   COMPILERS  other compilers than these
set -u

root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
twin=$(realpath -m -- "${TWIN:-$root/target/debug/twin}")
table=$root/tests/programs/options.txt
source=$root/tests/programs/conventions.c
work=$(mktemp -d "${TMPDIR:-/tmp}/twin-options-XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
same=0 refused=0 skipped=0 failed=0

. "$root/scripts/release.sh"
case ${1:-sample} in
sample) compilers=${COMPILERS:-gcc $release_clang} starred='\*' ;;
all) compilers=${COMPILERS:-gcc-11 gcc-12 gcc-14 clang-14 clang-16 clang-19} starred='.*' ;;
*)
    echo 'options.sh: say sample or all' >&2
    exit 1
    ;;
esac

# wrong WHAT FILE: counts a failure, and shows where to look.
wrong() {
    failed=$((failed + 1))
    printf 'WRONG: %s: %s\n%s\n' "$compiler $options" "$1" "$(head -n 3 "$2")"
}

# compile HALF OBJECT [TWIN...]: half 1 or 2 of the program.
compile() {
    half=$1 object=$2
    shift 2
    # Word splitting is wanted: options are separated by blanks.
    # shellcheck disable=SC2086
    "$@" "$compiler" $options -w -DHERE="$half" -c "$source" -o "$object" >"$work/log" 2>&1
}

# link_and_run NAME OBJECT OBJECT: what it prints, and its status, in NAME.out.
link_and_run() {
    name=$1
    shift
    # shellcheck disable=SC2086
    "$compiler" $options -w "$@" -o "$work/program" -lm >"$work/log" 2>&1 || return 1
    # Profiles are left in the directory it runs in.
    rm -f "$work"/*.gcda
    (cd "$work" && ulimit -t 20 && timeout 30 ./program >"$name.out" 2>&1 </dev/null)
    echo "status $?" >>"$work/$name.out"
}

same_as_native() {
    compile 1 "$work/n1.o" && compile 2 "$work/n2.o" && link_and_run native "$work/n1.o" "$work/n2.o" &&
        grep -q '^status 0$' "$work/native.out" || {
        skipped=$((skipped + 1))
        echo "skipped: $compiler $options: $(grep -m1 -h 'error\|status [1-9]' "$work/log" "$work/native.out" 2>/dev/null)"
        return
    }
    # Some conventions of some compilers do not work: clang 14's preserve_most at -O0.
    mv "$work/native.out" "$work/first.out"
    link_and_run native "$work/n1.o" "$work/n2.o"
    cmp -s "$work/native.out" "$work/first.out" || {
        skipped=$((skipped + 1))
        echo "skipped: $compiler $options: its own output is not the same twice"
        return
    }
    for half in 1 2; do
        compile "$half" "$work/t$half.o" "$twin" cc -- || {
            wrong "half $half" "$work/log"
            return
        }
    done
    for pair in 't1 t2' 't1 n2' 'n1 t2'; do
        # shellcheck disable=SC2086
        set -- $pair
        link_and_run twin "$work/$1.o" "$work/$2.o" || wrong "$pair: it does not link" "$work/log"
        if cmp -s "$work/native.out" "$work/twin.out"; then
            same=$((same + 1))
        else
            diff "$work/native.out" "$work/twin.out" >"$work/log"
            wrong "$pair: other output" "$work/log"
        fi
    done
}

# refused_by WORDS: the message has these words, and no object is left.
refused_by() {
    rm -f "$work/t2.o"
    if ! "$compiler" $options -w -DHERE=2 -S "$source" -o /dev/null >"$work/log" 2>&1; then
        skipped=$((skipped + 1))
        echo "skipped: $compiler $options: $(grep -m1 error "$work/log")"
    elif compile 2 "$work/t2.o" "$twin" cc --; then
        wrong 'it is not refused' "$work/log"
    elif [ -e "$work/t2.o" ] || ! grep -q -e "$1" "$work/log"; then
        wrong "it is refused otherwise" "$work/log"
    else
        refused=$((refused + 1))
    fi
}

[ -x "$twin" ] || {
    echo "options.sh: no $twin: build it first" >&2
    exit 1
}
for compiler in $compilers; do
    command -v "$compiler" >/dev/null || {
        echo "$compiler is not installed: skipped"
        continue
    }
    case $compiler in
    gcc*) kind=gcc ;;
    *) kind=clang ;;
    esac
    grep "^\($kind\|all\) *| *$starred *|" "$table" >"$work/rows"
    while IFS='|' read -r _ _ options outcome; do
        options=$(echo $options)
        case $outcome in
        *refused*) refused_by "${outcome#*refused }" ;;
        *) same_as_native ;;
        esac
    done <"$work/rows"
done
echo "$same programs the same, $refused options refused, $skipped skipped, $failed wrong"
[ "$failed" -eq 0 ]
