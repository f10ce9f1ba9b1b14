#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# check-objects.sh CORE_OBJECT... -- SLOW_PATH_OBJECT...
# Checks that no object uses vector state or calls code that may: none names a vector,
# mask, tile or x87 register or changes MXCSR, and none refers to anything outside the
# objects given (the core's not even to the others). Only vectors.o restores that state
# as a whole. No object requires an executable stack.
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
all=$(printf '%s\n' "$@" | grep -vxF -e --)

# refers OBJECTS OBJECTS TEXT: the latter define all that the former refer to.
refers() {
	defined=$(nm --defined-only $2 | awk 'NF == 3 { print $3 }' | sort -u)
	wanted=$(nm -u $1 | awk '$1 == "U" && $2 != "_GLOBAL_OFFSET_TABLE_" { print $2 }' | sort -u)
	for name in $wanted; do
		printf '%s\n' "$defined" | grep -qxF "$name" || complain "$3 refers to $name"
	done
}
refers "$core" "$core" "the core"
refers "$all" "$all" "the slow path"

registers='%([xyzt]mm|mm[0-7]|k[0-7]\b|st\b)'
whole='\b(f?xrstors?(64)?|v?ldmxcsr|vzero(upper|all)|fn?init|fldcw|fldenv|frstor|emms|wrpkru)\b'
for object in $all; do
	code=$(objdump -d --no-show-raw-insn "$object")
	printf '%s\n' "$code" | grep -qE "$registers" && complain "$object uses vector registers"
	case $object in
	*/vectors.o) ;;
	*) printf '%s\n' "$code" | grep -qE "$whole" && complain "$object changes vector state" ;;
	esac
	readelf -SW "$object" | grep -q 'note.GNU-stack' || complain "$object: no .note.GNU-stack"
done
exit $status
