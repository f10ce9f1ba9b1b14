#!/bin/sh
# Ends with 1, and says so, if target/ cannot grow to so many GiB on its file system.
#
#   scripts/space.sh GIB
#
# A build that runs out of space ends elsewhere: a linker that has mapped its output is
# ended by SIGBUS, and a download or a boot in QEMU by an error of its own.
set -eu

root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
case ${1-} in
'' | *[!0-9]*)
    echo "space.sh: usage: scripts/space.sh GIB" >&2
    exit 2
    ;;
esac

mkdir -p "$root/target"
has=$(du -sk "$root/target" | cut -f 1)
free=$(df -Pk "$root/target" | awk 'NR == 2 { print $4 }')
[ $((has + free)) -lt $(($1 << 20)) ] || exit 0

# KiB, as GiB with one decimal.
gib() { awk -v kib="$1" 'BEGIN { printf "%.1f GiB", kib / 1048576 }'; }
{
    echo "space.sh: $root/target needs $1 GiB in all; it has $(gib "$has"), and $(gib "$free") are free on its disk."
    echo "Free what is missing, or move target to a larger disk (a symbolic link will do)."
} >&2
exit 1
