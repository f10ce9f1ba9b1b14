// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Stubs: small pieces of code that reach a far address. Each ends with
 *
 *	jmp	*target(%rip)		ff 25 rel32
 *	...
 * +24	target: .quad
 *
 * and has int3 in its gaps.
 */
#include <string.h>

#include "platform.h"

#define TARGET 24
_Static_assert(TARGET + 8 == TWIN_TESTBED_STUB, "the target ends a stub");

/* The jump at byte `offset` of the stub. */
static void write_jump(uint8_t *stub, uint32_t offset, uint64_t target)
{
	uint32_t relative = TARGET - (offset + 6);

	stub[offset] = 0xff;
	stub[offset + 1] = 0x25;
	memcpy(stub + offset + 2, &relative, sizeof(relative));
	memcpy(stub + TARGET, &target, sizeof(target));
}

/* mov $number, %r11d; jmp twin_import_entry */
void twin_testbed_write_import(void *at, uint32_t number)
{
	uint8_t *stub = at;

	memset(stub, 0xcc, TWIN_TESTBED_STUB);
	stub[0] = 0x41;
	stub[1] = 0xbb;
	memcpy(stub + 2, &number, sizeof(number));
	write_jump(stub, 6, (uint64_t)twin_import_entry);
}

/* movabs $routine, %r11; jmp twin_call_out */
void twin_testbed_write_hot(void *at, twin_hot_routine routine)
{
	uint64_t address = (uint64_t)routine;
	uint8_t *stub = at;

	memset(stub, 0xcc, TWIN_TESTBED_STUB);
	stub[0] = 0x49;
	stub[1] = 0xbb;
	memcpy(stub + 2, &address, sizeof(address));
	write_jump(stub, 10, (uint64_t)twin_call_out);
}

/* movabs $hyp, %r11; jmp twin_note_lock or twin_note_unlock */
void twin_testbed_write_lock(void *at, uint64_t hyp, bool frees)
{
	uint8_t *stub = at;

	memset(stub, 0xcc, TWIN_TESTBED_STUB);
	stub[0] = 0x49;
	stub[1] = 0xbb;
	memcpy(stub + 2, &hyp, sizeof(hyp));
	write_jump(stub, 10, (uint64_t)(frees ? twin_note_unlock : twin_note_lock));
}

/* jmp target */
void twin_testbed_write_jump(void *at, uint64_t target)
{
	memset(at, 0xcc, TWIN_TESTBED_STUB);
	write_jump(at, 0, target);
}
