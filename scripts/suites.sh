#!/bin/sh
# Builds programs at -O2 through `twin cc`, runs their own test suites, and compares the
# results with those of the unrewritten builds.
#
#   scripts/suites.sh [PROGRAM...]     default: all of tests/programs/suites
#
# tests/programs/suites/PROGRAM.sh says how a program is built and tested: functions `build`
# and `suite`, which are run in a copy of its source, with CC and FLAGS. What `suite` prints
# is compared; how long something took must not be in it. `package` names Debian's source
# package, `beside` those whose sources are copied into it, and `needs` what the suite needs
# (COMMAND:PACKAGE, as for setup.sh).
#
# Sources are fetched by name into target/programs. Prints for each program what was
# rewritten and that both builds do the same; fails at the end if one did not.
#
#   TWIN        the program (default target/debug/twin)
#   COMPILERS   default gcc and this release's clang
#   LEVEL       default -O2
set -eu

root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
. "$root/scripts/release.sh"
programs=$root/target/programs
suites=$root/tests/programs/suites
twin=$(realpath -m -- "${TWIN:-$root/target/debug/twin}")
work=$programs/suites
level=${LEVEL:--O2}

# A suite's file, for a subshell: the functions and names that it has.
load() {
    needs= beside=
    # shellcheck disable=SC1090
    . "$suites/$1.sh"
}

# one PROGRAM COMPILER KIND CC: builds and tests in a directory of its own; the results are
# in PROGRAM-COMPILER-KIND.out.
one() (
    name=$work/$1-$2-$3
    load "$1"
    rm -rf "$name"
    cp -a "$programs/$package" "$name"
    for source in $beside; do
        cp -a "$programs/$source" "$name/$source"
    done
    CC=$4 FLAGS=$level
    export CC FLAGS
    cd "$name"
    (set -e && build) >"$name.log" 2>&1 </dev/null || {
        echo "$1 $2 ($3): it does not build: see $name.log"
        exit 1
    }
    # A suite that fails says so by what it prints.
    (suite) >"$name.out" 2>"$name.err" </dev/null || echo "status $?" >>"$name.out"
    [ -s "$name.out" ] || {
        echo "$1 $2 ($3): its tests print nothing: see $name.err"
        exit 1
    }
)

# compared PROGRAM COMPILER
compared() {
    report=$work/$1-$2.jsonl
    rm -f "$report"
    one "$1" "$2" original "$2" || return 1
    one "$1" "$2" twin "$twin cc --report $report -- $2" || return 1
    [ -s "$report" ] || {
        echo "$1 $2: nothing was rewritten"
        return 1
    }
    diff "$work/$1-$2-original.out" "$work/$1-$2-twin.out" >"$work/$1-$2.diff" || {
        echo "$1 $2: DIFFERENT: see $work/$1-$2.diff"
        return 1
    }
    echo "$1 $2 $level: same, $(wc -l <"$work/$1-$2-twin.out") lines of results:" \
        "$(sh "$root/scripts/counted.sh" "$report")"
    rm -rf "$work/$1-$2-original" "$work/$1-$2-twin"
}

[ -x "$twin" ] || {
    echo "suites.sh: no $twin: build it first" >&2
    exit 1
}
[ $# -gt 0 ] || set -- $(basename -s .sh "$suites"/*.sh)
# shellcheck disable=SC2046
sh "$root/scripts/setup.sh" $(for p; do (load "$p" && echo "$needs"); done)
# shellcheck disable=SC2046
sh "$root/scripts/sources.sh" $(for p; do (load "$p" && echo "$package $beside"); done)
mkdir -p "$work"
different=0
for program; do
    for compiler in ${COMPILERS:-gcc $release_clang}; do
        compared "$program" "$compiler" || different=$((different + 1))
    done
done
[ "$different" -eq 0 ]
