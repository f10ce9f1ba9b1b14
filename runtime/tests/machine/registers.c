// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The machine tests: registers that slow paths, ports and calls keep.
 */
#include "machine.h"

/* Numbers of registers in `image`; the value PATTERN gave each. */
enum { RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI, R8, R9, R10, R11 };

static uint64_t pattern(unsigned int number)
{
	/* rcx rdx rbx rbp rsi rdi r8 ... r15 rax are 1, 2, 3, ... */
	unsigned int factor = number == RAX ? 15 : number < RSP ? number : number - 1;

	return 0x0101010101010101ull * factor;
}

#define STATUS_FLAGS 0xcd5	/* OF DF SF ZF AF PF CF */

/* All of `image` is as before the call, but for registers in the mask. */
static void kept_all_but(uint32_t mask, bool flags, bool vector)
{
	unsigned int i;

	for (i = 0; i < 16; i++)
		if (i != RSP && !(mask & 1u << i))
			CHECK_EQUAL(image.regs[i], pattern(i));
	if (flags)
		CHECK_EQUAL(image.flags & STATUS_FLAGS, driver_flags & STATUS_FLAGS);
	if (vector)
		CHECK(!memcmp(image.vectors, vectors, sizeof(image.vectors)));
}

static const char *const keepers[] = {
	keep_rax, keep_rcx, keep_rdx, keep_rbx, NULL, keep_rbp, keep_rsi, keep_rdi, keep_r8,
	keep_r9, keep_r10, keep_r11, keep_r12, keep_r13, keep_r14, keep_r15,
};

static const uint64_t flag_patterns[] = { 0x202, 0xed7, 0xa02, 0x603, 0x246, 0x292, 0x216 };

void slow_paths_keep_all_registers(void)
{
	unsigned int i, f;

	for (f = 0; f < sizeof(flag_patterns) / sizeof(flag_patterns[0]); f++) {
		driver_flags = flag_patterns[f];
		for (i = 0; i < 16; i++) {
			uint64_t window;

			if (!keepers[i])
				continue;
			set_up(TWIN_SCHEME_STLB);
			/* A fill, and then a hit. */
			CHECK_EQUAL(enter(keepers[i], DATA + 0x123, 0), TWIN_OK);
			kept_all_but(1u << i, false, true);
			window = image.regs[i];
			CHECK_EQUAL(*(uint64_t *)(window - 0x123), word(0, 0));
			CHECK_EQUAL(enter(keepers[i], DATA + 0x124, 0), TWIN_OK);
			kept_all_but(1u << i, false, true);
			CHECK_EQUAL(image.regs[i], window + 1);
			/* The own stack. */
			CHECK_EQUAL(enter(keepers[i], cpu->driver_low + 5, 0), TWIN_OK);
			kept_all_but(1u << i, false, true);
			CHECK_EQUAL(image.regs[i], cpu->driver_low + 5);
			CHECK_EQUAL(image.regs[RSP], image_rsp);
			tear_down();
		}
	}
	driver_flags = 0x202;
}

void ports_and_warnings_keep_everything(void)
{
	unsigned int f;

	for (f = 0; f < sizeof(flag_patterns) / sizeof(flag_patterns[0]); f++) {
		driver_flags = flag_patterns[f];
		set_up(TWIN_SCHEME_STLB);
		CHECK_EQUAL(enter(keep_in16, 0x302, 0), TWIN_OK);
		kept_all_but(1u << RAX | 1u << RDX, true, true);
		CHECK_EQUAL(image.regs[RDX], 0x302);
		CHECK_EQUAL(image.regs[RAX], (pattern(RAX) & ~0xffffull) | 0xcdef);
		CHECK_EQUAL(enter(keep_out32, 0x304, 0), TWIN_OK);
		kept_all_but(1u << RDX, true, true);
		CHECK_EQUAL(host.value, (uint32_t)pattern(RAX));
		CHECK_EQUAL(enter(keep_warn, 0, 0), TWIN_OK);
		kept_all_but(0, true, true);
		CHECK_EQUAL(host.warnings, 1);
		CHECK(!host.backward);
		tear_down();
	}
	driver_flags = 0x202;
}

int answer_42(struct twin_call_frame *frame)
{
	frame->rax = 42;
	return TWIN_OK;
}

void imports_change_only_what_they_say(void)
{
	set_up(TWIN_SCHEME_STLB);
	driver_flags = 0xed7;
	host.import = answer_42;
	CHECK_EQUAL(enter(keep_import, 0, 0), TWIN_OK);
	kept_all_but(1u << RAX | 1u << R11, true, false);
	CHECK_EQUAL(image.regs[RAX], 42);
	CHECK_EQUAL(image.regs[R11], 0x12345678);
	driver_flags = 0x202;
	tear_down();
}

/* hot_overwrite gives 7; rsp at its end and the registers of the host are seen by nobody. */
void hot_routines_leave_nothing_of_the_hosts(void)
{
	set_up(TWIN_SCHEME_STLB);
	driver_flags = 0xed7;
	hot_stub = (uint64_t)stubs + 3 * TWIN_TESTBED_STUB;
	CHECK_EQUAL(enter(keep_hot, 0, 0), TWIN_OK);
	hot_stub = (uint64_t)stubs + TWIN_TESTBED_STUB;
	kept_all_but(1u << RAX | 1u << R10 | 1u << R11, false, false);
	CHECK_EQUAL(image.regs[RAX], 7);
	CHECK_EQUAL(image.regs[R10], 0);
	CHECK_EQUAL(image.regs[R11], (uint64_t)keep_hot_site);
	CHECK_EQUAL(image.regs[RSP], image_rsp);
	CHECK_EQUAL(image.flags & STATUS_FLAGS, 0x44);	/* of a comparison of equals */
	driver_flags = 0x202;
	tear_down();
}

static int enter_and_call(struct twin_call_frame *frame)
{
	const uint64_t args[6] = { VM_DOUBLE, 21, ~0ull, ~0ull, ~0ull, ~0ull };

	return twin_enter(cpu, instance, (uint64_t)driver_call, args, &frame->rax);
}

void a_nested_entry_changes_no_outer_register(void)
{
	set_up(TWIN_SCHEME_STLB);
	driver_flags = 0xed7;
	host.import = enter_and_call;
	CHECK_EQUAL(enter(keep_import, 0, 0), TWIN_OK);
	kept_all_but(1u << RAX | 1u << R11, true, false);
	CHECK_EQUAL(image.regs[RAX], 43);
	CHECK_EQUAL(image.regs[RSP], image_rsp);
	driver_flags = 0x202;
	tear_down();
}

void indirect_calls_keep_all_but_r10_and_r11(void)
{
	unsigned int i;

	set_up(TWIN_SCHEME_STLB);
	for (i = 0; i < 3; i++) {	/* one miss, two hits */
		memset(&image, 0, sizeof(image));
		CHECK_EQUAL(enter(keep_call, VM_IMAGE, 0), TWIN_OK);
		kept_all_but(1u << R10 | 1u << R11, false, true);
		CHECK_EQUAL(image.regs[RSP], image_rsp - 8);
	}
	CHECK_EQUAL(instance->statistics.call_misses, 1);
	tear_down();
}
