#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# check-objects.sh CORE_OBJECT... -- OTHER_OBJECT...
# No object uses a vector register (fxsave and fxrstor excepted); the core's
# refer to nothing outside the core; nobody wants an executable stack.
status=0
complain() {
	echo "check: $*" >&2
	status=1
}
core=
for object in "$@"; do
	[ "$object" = -- ] && break
	core="$core $object"
done
defined=$(nm --defined-only $core | awk 'NF == 3 { print $3 }' | sort -u)
wanted=$(nm -u $core | awk '$1 == "U" && $2 != "_GLOBAL_OFFSET_TABLE_" { print $2 }' | sort -u)
for name in $wanted; do
	printf '%s\n' "$defined" | grep -qxF "$name" || complain "the core refers to $name"
done
for object in "$@"; do
	[ "$object" = -- ] && continue
	if objdump -d "$object" | grep -qE '%([xyz]mm|mm[0-7]|st\b)'; then
		complain "$object uses vector registers"
	fi
	readelf -SW "$object" | grep -q 'note.GNU-stack' || complain "$object: no .note.GNU-stack"
done
exit $status
