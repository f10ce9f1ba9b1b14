#!/bin/sh
# Builds the testbed's support objects against the stock kernel's headers, and modules for
# tests against those of a kernel.
#
#   scripts/support.sh [SERIES[-FLAVOUR][@SUITE]]
#
# Leaves, below target/support/:
#   kernel.o   the dom0 kernel shim, from crates/e1000-sim/kernel/
#   hot.o      the hot routines, from runtime/hot/
# and there, or below target/support-SERIES/ for that kernel:
#   wild.ko    a module with a wild pointer, from crates/qemu-tests/guest/
#   fixup.ko   one whose faults the kernel answers, from the same directory
#   flags.ko   one with instructions of kernels of other configurations, from the same directory
# Each file is compiled by the kernel's own build (kbuild, one object a file) in
# a copy of its directory below target/support/build, so nothing is written to the
# source directories; `ld -r -S` combines them, without debug information, as in
# a distributed module. Files that are up to date are kept.
#
# Then kernel.o and hot.o are checked: together with the stock e1000.ko every import is
# defined exactly once, except the host's functions, which kernel.h declares.
# Needs target/stock/headers, and for a series target/stock-SERIES/headers
# (scripts/headers.sh), and the compilers that they name.
set -eu

root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd -P)
support=$root/target/support
stock=$root/target/stock
kernel=${1-}
include=$root/runtime/include
# Beyond the kernel's own set of warnings. Those taken back fire inside headers.
warnings='-Wall -Wextra -Werror -Wno-unused-parameter -Wno-sign-compare -Wno-missing-field-initializers -Wno-type-limits'

die() {
    printf 'support.sh: %s\n' "$*" >&2
    exit 1
}

# headers_of KERNEL: where they are, if they and the compiler that they name are there.
headers_of() {
    directory=target/stock${1:+-$1}/headers
    [ -e "$root/$directory/Makefile" ] || die "no $directory: run make stock${1:+ KERNEL=$1}"
    compiler=$(sed -n 's/^CONFIG_CC_VERSION_TEXT="*\([^ ]*\).*/\1/p' "$root/$directory/include/config/auto.conf")
    command -v "$compiler" >/dev/null ||
        die "$directory is for $compiler, which is not installed${1:+; KERNEL=$1 is for a release that has it}"
    (CDPATH='' cd -P -- "$root/$directory" && pwd -P)
}
headers=$(headers_of '')

# True if $1 is newer than the directory $2, what is in it, and what it includes.
current() {
    [ -e "$1" ] &&
        [ -z "$(find "$2" -maxdepth 1 -newer "$1" -print | head -n 1)" ] &&
        [ -z "$(find "$include" "$0" -newer "$1" -print | head -n 1)" ]
}

# Copies changed files of directory $1 into $2 and deletes those that are gone.
refresh() {
    mkdir -p "$2"
    for file in "$2"/*.[chS]; do
        # kbuild's own, which it makes again only where the module changed.
        case $file in *.mod.c) continue ;; esac
        [ -e "$1/${file##*/}" ] || rm -f "$file" "${file%.*}.o"
    done
    for file in "$1"/*.[chS]; do
        [ -e "$file" ] || continue
        cmp -s "$file" "$2/${file##*/}" || cp "$file" "$2/"
    done
}

# The objects of the sources in the directory $1, without their directory.
objects() {
    for file in "$1"/*.[cS]; do
        [ -e "$file" ] || continue
        file=${file##*/}
        echo "${file%.*}.o"
    done | sort
}

# combine NAME SOURCES OBJTOOL: builds target/support/NAME.o from SOURCES.
combine() {
    name=$1 sources=$2 build=$support/build/$1
    if [ -z "$(objects "$sources")" ]; then
        echo "support: no sources in ${sources#"$root"/}, no $name.o"
        return
    fi
    if current "$support/$name.o" "$sources"; then
        return
    fi
    refresh "$sources" "$build"
    # shellcheck disable=SC2046
    set -- $(objects "$build")
    {
        echo "obj-m := $*"
        echo "ccflags-y := -D__NO_FORTIFY -fno-tree-loop-distribute-patterns -I$build -I$include $warnings"
        echo "asflags-y := -I$build -I$include"
        # kernel.o is never rewritten, so it needs no tables of objtool. And it calls
        # the host, whose code needs 16-byte aligned stacks, while kernel code keeps 8.
        if [ "$name" = kernel ]; then
            echo 'OBJECT_FILES_NON_STANDARD := y'
            echo 'ccflags-y += -mincoming-stack-boundary=3 -mpreferred-stack-boundary=4'
        fi
    } >"$build/Makefile.new"
    cmp -s "$build/Makefile.new" "$build/Makefile" || cp "$build/Makefile.new" "$build/Makefile"
    rm -f "$build/Makefile.new"
    # kbuild's own progress is noise unless it fails.
    make -s -j2 -C "$headers" M="$build" "$@" >"$build/log" 2>&1 || {
        cat "$build/log" >&2
        die "$name: kbuild failed (log above, in ${build#"$root"/}/log)"
    }
    [ ! -s "$build/log" ] || cat "$build/log" >&2
    (cd "$build" && ld -r -S -o "$support/$name.new" "$@")
    mv "$support/$name.new" "$support/$name.o"
    echo "support: target/support/$name.o ($# files)"
}

# guest NAME...: builds NAME.ko in target/support[-KERNEL], whole modules for that kernel.
guest() {
    made=$support${kernel:+-$kernel}
    sources=$root/crates/qemu-tests/guest build=$made/build/guest
    headers=$(headers_of "$kernel")
    stale=
    for name; do
        current "$made/$name.ko" "$sources" || stale=yes
    done
    [ -n "$stale" ] || return 0
    refresh "$sources" "$build"
    echo "obj-m := $(printf '%s.o ' "$@")" >"$build/Makefile"
    # BTF is not needed, and kbuild would want pahole for it, or report that it leaves it out.
    make -s -C "$headers" M="$build" CONFIG_DEBUG_INFO_BTF_MODULES= modules >"$build/log" 2>&1 || {
        cat "$build/log" >&2
        die "guest modules: kbuild failed (log above, in ${build#"$root"/}/log)"
    }
    for name; do
        cp "$build/$name.ko" "$made/$name.new"
        mv "$made/$name.new" "$made/$name.ko"
        echo "support: ${made#"$root"/}/$name.ko"
    done
}

defined() { nm --defined-only -g "$1" | awk 'NF == 3 && $2 != "w" { print $3 }' | sort -u; }
undefined() { nm -u "$1" | awk '$1 == "U" { print $2 }' | sort -u; }

# Every import of the three objects is defined once; host_* by the host.
check() {
    work=$(mktemp -d "$support/check.XXXXXX")
    trap 'rm -rf "$work"' EXIT
    status=0
    defined "$support/kernel.o" >"$work/kernel"
    defined "$support/hot.o" >"$work/hot"
    # Only the loader uses e1000.ko's own globals (init_module ...).
    comm -12 "$work/kernel" "$work/hot" >"$work/twice"
    if [ -s "$work/twice" ]; then
        echo "defined by kernel.o and hot.o both: $(tr '\n' ' ' <"$work/twice")" >&2
        status=1
    fi
    {
        cat "$work/kernel" "$work/hot"
        sed -n 's/^[a-z_0-9]*[ ]*[a-z_0-9]* *\(host_[a-z_]*\)(.*/\1/p' "$root/crates/e1000-sim/kernel/kernel.h"
    } | sort -u >"$work/all"
    for object in "$stock/e1000.ko" "$support/kernel.o" "$support/hot.o"; do
        undefined "$object" | comm -23 - "$work/all" >"$work/missing"
        [ -s "$work/missing" ] || continue
        echo "${object##*/}: nobody defines $(tr '\n' ' ' <"$work/missing")" >&2
        status=1
    done
    nm -g --defined-only "$support/hot.o" | awk '$3 ~ /^twin_/ { print $3 }' >"$work/reserved"
    if [ -s "$work/reserved" ]; then
        echo "hot.o defines reserved names: $(tr '\n' ' ' <"$work/reserved")" >&2
        status=1
    fi
    [ "$status" -eq 0 ] || die "the support objects do not fit together"
    imports=$(undefined "$stock/e1000.ko" | wc -l)
    hot=$(undefined "$stock/e1000.ko" | comm -12 - "$work/hot" | wc -l)
    echo "support: e1000.ko's $imports imports: $hot by hot.o, $((imports - hot)) by kernel.o"
}

mkdir -p "$support"
combine kernel "$root/crates/e1000-sim/kernel"
combine hot "$root/runtime/hot"
guest wild fixup flags
if [ -e "$support/hot.o" ] && [ -e "$support/kernel.o" ]; then
    check
fi
