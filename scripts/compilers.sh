#!/bin/sh
# Runs each compiler that Debian 12 or 13 packages, at each level, with each set of flags,
# through `twin cc`: user programs are run and compared with their unrewritten builds,
# kernel objects are linked with the runtime and verified.
#
#   scripts/compilers.sh sample    this release's gcc and clang, the ends of the levels
#   scripts/compilers.sh all       gcc 11 to 16, clang 13 to 22, those installed
#
# Installs nothing; reports a compiler that is not installed as skipped. Ends with the
# number of builds that were the same or verified; fails at the first that is not.
#
#   TWIN    the program (default target/debug/twin)
set -eu

root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
twin=$(realpath -m -- "${TWIN:-$root/target/debug/twin}")
program=$root/tests/programs/compilers.c
kernel=$root/tests/fixtures/source/kernel.c
work=$(mktemp -d "${TMPDIR:-/tmp}/twin-compilers-XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
built=0

die() {
    printf 'compilers.sh: %s\n' "$*" >&2
    exit 1
}

. "$root/scripts/release.sh"

# Debian 12 and its security updates have gcc 11 and 12 and clang 13 to 16, 19 and 22, Debian
# 13 gcc 12 to 14 and clang 17 to 19; `make programs` installs what there is.
case ${1:-sample} in
sample)
    compilers="$release_gcc $release_clang"
    levels='-O0 -O2'
    ;;
all)
    compilers='gcc-11 gcc-12 gcc-13 gcc-14 gcc-15 gcc-16 clang-13 clang-14 clang-15 clang-16 clang-17 clang-18 clang-19
        clang-20 clang-21 clang-22'
    levels='-O0 -O1 -O2 -O3 -Os'
    ;;
*) die 'say sample or all' ;;
esac

# Sets of flags, one a line. What a kernel is built with, gcc and clang spell
# differently in part (facts of Debian's own build: retpolines, return thunks,
# fentry, no jump tables).
user_flags() {
    printf '%s\n' '' '-g' '-fPIC -g1' '-fno-asynchronous-unwind-tables' \
        '-fno-omit-frame-pointer -fstack-protector-strong' '-march=x86-64-v3' '-masm=att -funwind-tables -pipe'
}
kernel_flags() {
    common='-D__KERNEL__ -std=gnu11 -ffreestanding -mcmodel=kernel -fno-pic -fno-PIE -mno-red-zone -mno-sse
        -mno-mmx -mno-avx -m64 -fno-strict-aliasing -fno-common -fcf-protection=none
        -fno-asynchronous-unwind-tables -fno-jump-tables -fno-delete-null-pointer-checks'
    # shellcheck disable=SC2086
    common=$(echo $common)
    case $1 in
    gcc*)
        printf '%s\n' "$common" "$common -mindirect-branch=thunk-extern \
-mindirect-branch-register -mfunction-return=thunk-extern -pg -mrecord-mcount -mfentry \
-fstack-protector-strong -mstack-protector-guard=tls -g"
        ;;
    clang*)
        printf '%s\n' "$common" "$common -mretpoline-external-thunk -g -fno-omit-frame-pointer"
        ;;
    esac
}

# program COMPILER FLAGS: the same output and status.
program() {
    # shellcheck disable=SC2086
    "$1" $2 -w "$program" -o "$work/original" -lm >"$work/log" 2>&1 ||
        die "$1 $2: the compiler itself fails: $(head -n 3 "$work/log")"
    # shellcheck disable=SC2086
    "$twin" cc -- "$1" $2 -w "$program" -o "$work/twin" -lm >"$work/log" 2>&1 ||
        die "$1 $2: $(head -n 3 "$work/log")"
    for which in original twin; do
        { "$work/$which" && echo "status 0" || echo "status $?"; } >"$work/$which.out" 2>&1
    done
    cmp -s "$work/original.out" "$work/twin.out" ||
        die "$1 $2: $(diff "$work/original.out" "$work/twin.out" | head -n 3)"
    built=$((built + 1))
}

# kernel COMPILER FLAGS: verified as a module of one object.
kernel() {
    # shellcheck disable=SC2086
    "$twin" cc --target linux -- "$1" $2 -w -c "$kernel" -o "$work/kernel.o" \
        >"$work/log" 2>&1 || die "$1 $2: $(head -n 3 "$work/log")"
    "$twin" verify --target linux "$work/kernel.o" >"$work/log" 2>&1 || die "$1 $2: $(head -n 3 "$work/log")"
    built=$((built + 1))
}

[ -x "$twin" ] || die "no $twin: build it first"
for compiler in $compilers; do
    command -v "$compiler" >/dev/null || {
        echo "$compiler is not installed: skipped"
        continue
    }
    before=$built
    for level in $levels; do
        user_flags >"$work/user"
        kernel_flags "$compiler" >"$work/kernel"
        while read -r flags; do program "$compiler" "$level $flags"; done <"$work/user"
        while read -r flags; do kernel "$compiler" "$level $flags"; done <"$work/kernel"
    done
    echo "$compiler: $((built - before)) builds, the same or verified"
done
echo "$built builds"
