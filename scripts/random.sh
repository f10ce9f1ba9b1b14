#!/bin/sh
# Makes random C programs with csmith, compiles each with a compiler and through `twin cc`,
# runs both, and compares what they print and how they end.
#
#   scripts/random.sh sample            3 programs, 12 builds
#   scripts/random.sh all               100 programs, 10 builds each (two compilers, five levels)
#   scripts/random.sh seeds FIRST LAST  the programs of these seeds, as `all`
#
# A seed gives the same program each time. It chooses csmith's options, too; and with the
# number of the build, a line of tests/programs/shapes.txt. A program that does not end in
# five seconds is left out. What differs is kept in target/programs/random, with the
# command that shows it. Installs nothing: without csmith it says so, and that is all.
# Fails at the end if a program differed.
#
#   TWIN        the program (default target/debug/twin)
#   COMPILERS   default gcc and this release's clang
#   LEVELS      default "-O0 -O1 -O2 -O3 -Os"
#   ACCESSES    which accesses are translated (default all; or stores)
set -u

root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
. "$root/scripts/release.sh"
twin=$(realpath -m -- "${TWIN:-$root/target/debug/twin}")
kept=$root/target/programs/random
compilers=${COMPILERS:-gcc $release_clang}
levels=${LEVELS:--O0 -O1 -O2 -O3 -Os}
every=1 first=1
case ${1:-sample} in
# Of ten builds of a program each third: all levels and both compilers in three programs.
sample) last=3 every=3 ;;
all) last=100 ;;
seeds) first=${2:?a seed} last=${3:?a seed} ;;
*)
    echo 'random.sh: say sample, all, or seeds FIRST LAST' >&2
    exit 1
    ;;
esac
command -v csmith >/dev/null || {
    echo 'csmith is not installed: random programs are skipped'
    exit 0
}
headers=/usr/include/csmith
[ -e "$headers/csmith.h" ] || {
    echo 'libcsmith-dev is not installed: random programs are skipped'
    exit 0
}
[ -x "$twin" ] || {
    echo "random.sh: no $twin: build it first" >&2
    exit 1
}
work=$(mktemp -d "${TMPDIR:-/tmp}/twin-random-XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
same=0 left_out=0 different=0 builds=0

# kinds N: csmith's options of the Nth kind of program.
kinds() {
    sed -n "$(($1 % 12 + 1))p" <<'EOF'
--max-funcs 6
--packed-struct --bitfields --max-struct-fields 20
--float --max-funcs 4
--inline-function --inline-function-prob 60
--no-bitfields --max-pointer-depth 5 --max-array-dim 4
--max-funcs 25 --max-block-size 3 --inline-function
--arg-structs --return-structs --arg-unions --return-unions --max-struct-fields 15
--no-global-variables --max-block-size 8 --max-expr-complexity 20
--computed-goto --jumps --max-funcs 4
--int128 --uint128 --math64
--strict-float --float --no-safe-math
--force-non-uniform-arrays --max-array-len-per-dim 20 --no-volatiles --consts
EOF
}

# shape COMPILER N: the Nth line of options for a compiler.
shape() {
    case $1 in
    gcc*) kind=gcc ;;
    *) kind=clang ;;
    esac
    sed -n "s/^\($kind\|all\) *| *//p" "$root/tests/programs/shapes.txt" |
        awk -v n="$2" '{ line[NR - 1] = $0 } END { print line[n % NR] }'
}

# ends FILE: whether the program can be compiled and ends soon.
ends() {
    gcc -w -O1 -I "$headers" "$1" -o "$work/ends" 2>/dev/null && (ulimit -t 5 && exec timeout 5 "$work/ends" >/dev/null 2>&1)
}

seed=$first
while [ "$seed" -le "$last" ]; do
    file=$work/random-$seed.c
    options=$(kinds "$seed")
    # A kind that this csmith does not know is the plain one. It leaves a file where it runs.
    # Word splitting is wanted.
    # shellcheck disable=SC2086
    (cd "$work" && timeout 20 csmith --seed "$seed" $options) >"$file" 2>/dev/null ||
        (cd "$work" && timeout 20 csmith --seed "$seed") >"$file" 2>/dev/null
    if ends "$file"; then
        for compiler in $compilers; do
            command -v "$compiler" >/dev/null || continue
            for level in $levels; do
                builds=$((builds + 1))
                [ $((builds % every)) -eq 0 ] || continue
                flags="$level $(shape "$compiler" "$((seed + builds))")"
                line=$(sh "$root/scripts/torture.sh" "$twin" "$work/report" "$compiler" "$flags -I $headers" "$file")
                case $line in
                same*) same=$((same + 1)) ;;
                skipped*)
                    left_out=$((left_out + 1))
                    echo "skipped: $compiler $flags: seed $seed"
                    ;;
                *)
                    different=$((different + 1))
                    mkdir -p "$kept"
                    cp "$file" "$kept"
                    echo "$line"
                    echo "  sh scripts/torture.sh $twin report $compiler '$flags -I $headers' $kept/random-$seed.c"
                    ;;
                esac
            done
        done
    else
        left_out=$((left_out + 1))
        echo "skipped: seed $seed: it does not end, or gcc does not take it"
    fi
    rm -f "$file"
    seed=$((seed + 1))
done
echo "random programs: $same the same, $left_out skipped, $different different"
[ "$different" -eq 0 ] && [ "$same" -gt 0 ]
