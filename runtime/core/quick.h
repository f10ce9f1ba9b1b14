/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Assembly of a quick entry, for entry_x86_64.S and platforms that enter by assembly of
 * their own. twin_enter_quick is the whole of it.
 */
#ifndef TWIN_QUICK_H
#define TWIN_QUICK_H

#include "offsets.h"

/*
 * Into the gate, or to `slowly` with nothing changed. What twin_enter does, and where it is
 * here:
 *
 *   not nested                      cpu->instance is 0
 *   the gate                        count + 1; if it was closed, count - 1 and slowly.
 *                                   Whoever closes it waits until the count is 0, so the
 *                                   moment in between is a moment of waiting
 *   the data stack is in the window the layout is that for which it was found there. Asked
 *                                   inside, where it does not change
 *   alive, no maintenance           two words, by one comparison
 *
 * All four are registers; t is destroyed.
 */
.macro ADMIT_QUICK cpu, instance, function, t, slowly
	cmpq	$0, CPU_INSTANCE(%\cpu)
	jne	\slowly
	movl	$1, %\t\()d
	lock xaddl %\t\()d, INSTANCE_GATE(%\instance)
	testl	%\t\()d, %\t\()d
	js	98f
	movq	CPU_STACK_LAYOUT(%\cpu), %\t
	cmpq	%\t, INSTANCE_LAYOUT(%\instance)
	jne	98f
	cmpq	$0, INSTANCE_DEAD(%\instance)	# and maintain
	je	99f
98:	lock decl INSTANCE_GATE(%\instance)
	jmp	\slowly
99:	lock incq INSTANCE_ENTRIES(%\instance)
	leaq	INSTANCE_CALL_CACHE(%\instance), %\t
	movq	%\instance, CPU_INSTANCE(%\cpu)
	movq	%\t, CPU_CALL_CACHE(%\cpu)
	movq	%\function, CPU_ENTRY_FUNCTION(%\cpu)
	movq	$0, CPU_STOP(%\cpu)		# and locks
.endm

#endif /* TWIN_QUICK_H */
