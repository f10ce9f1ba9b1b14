#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# names.sh HOT.O OUT: makes the files that join the rewritten hot routines to the tests.
#   OUT/callers   a caller's name X of a hot routine becomes run_X
#   OUT/rewritten in the rewritten object, X becomes tw_X and an import I stub_I
#   OUT/glue.S    run_X enters tw_X; stub_I comes back to the native I
set -eu
hot=$1
out=$2
routines=$(nm --defined-only -g "$hot" | awk '$2 == "T" { print $3 }')
# Functions only: imported variables the rewriter names twin_vm:*.
imports=$(nm -u "$3" | awk '$1 == "U" && $2 !~ /^twin_/ { print $2 }')

: > "$out/callers"
: > "$out/rewritten"
for x in $routines; do
	echo "$x run_$x" >> "$out/callers"
	echo "$x tw_$x" >> "$out/rewritten"
done
for i in $imports; do
	echo "$i stub_$i" >> "$out/rewritten"
done
nm -u "$3" | awk '$2 ~ /^twin_vm:/ { print $2 }' | while read -r name; do
	case $name in
	twin_vm:.data..percpu) echo "$name __start_percpu_area" ;;
	twin_vm:.*) echo "$name __start_hot_$(echo "${name#twin_vm:.}" | tr . _)" ;;
	*) echo "$name ${name#twin_vm:}" ;;
	esac
done >> "$out/rewritten"
{
	echo '.text'
	for x in $routines; do
		echo ".globl run_$x; run_$x: leaq tw_$x(%rip), %rax; jmp test_run"
	done
	n=0
	for i in $imports; do
		echo ".globl stub_$i; stub_$i: movl \$$n, %r11d; jmp twin_import_entry"
		n=$((n + 1))
	done
	cat <<'END'
test_run:
	pushq	%rbp
	movq	%rsp, %rbp
	pushq	%r9
	pushq	%r8
	pushq	%rcx
	pushq	%rdx
	pushq	%rsi
	pushq	%rdi
	movq	%rsp, %rsi
	movq	%rax, %rdi
	andq	$-16, %rsp
	call	test_enter
	leave
	ret
	.section .rodata
	.balign 8
	.globl	test_imports, test_imports_count
test_imports:
END
	for i in $imports; do
		echo "	.quad $i"
	done
	echo "test_imports_count: .quad $n"
	echo '.section .note.GNU-stack, "", @progbits'
} > "$out/glue.S"
