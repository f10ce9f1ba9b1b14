# SPDX-License-Identifier: MIT OR Apache-2.0
# Somebody else's livepatch, for the scenario `livepatches`: a function that returns, called when it is applied. As
# such patches are, it is made for Xen as it was built. Sourced by xen.sh.

# note_of BUILD-ID: its bytes, with commas between.
note_of() {
    echo "$1" | sed 's/../0x&,/g; s/,$//'
}

# add_livepatch FOLDER NAME: the file NAME.livepatch, of that name in Xen.
add_livepatch() {
    note=$(note_of "$(sed -n 's/^build-id //p' "$table")")
    cat >"$1/$2.S" <<ASM
	.text
	.type	${2}_applied, @function
${2}_applied:
	ret
	.section .livepatch.hooks.load, "aw", @progbits
	.quad	${2}_applied
	.section .livepatch.depends, "a", @note
	.long	4, 20, 3
	.asciz	"GNU"
	.byte	$note
	.section .livepatch.xen_depends, "a", @note
	.long	4, 20, 3
	.asciz	"GNU"
	.byte	$note
	.section .note.GNU-stack, "", @progbits
ASM
    ${CC:-cc} -c -o "$1/$2.o" "$1/$2.S"
    ld -r --build-id=sha1 -o "$1/$2.livepatch" "$1/$2.o"
    rm "$1/$2.S" "$1/$2.o"
}
