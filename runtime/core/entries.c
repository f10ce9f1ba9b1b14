// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The entries of entry_x86_64.S that a rewritten object may name.
 */
#include "internal.h"

#define SLOW_REGISTERS(X)							\
	X(rax) X(rcx) X(rdx) X(rbx) X(rbp) X(rsi) X(rdi) X(r8) X(r9) X(r10)	\
	X(r11) X(r12) X(r13) X(r14) X(r15)

#define DECLARE_SLOW(reg) void twin_slow_##reg(void);
#define LIST_SLOW(reg) { TWIN_NAME_SLOW_PREFIX #reg, twin_slow_##reg },

SLOW_REGISTERS(DECLARE_SLOW)
void twin_stlb_call(void);
void twin_in8(void);
void twin_in16(void);
void twin_in32(void);
void twin_out8(void);
void twin_out16(void);
void twin_out32(void);
void twin_warn(void);
void twin_bug(void);
void twin_smashed(void);
void twin_wild(void);

const struct twin_entry_point twin_entry_points[] = {
	SLOW_REGISTERS(LIST_SLOW)
	{ TWIN_NAME_CALL, twin_stlb_call },
	{ TWIN_NAME_IN8, twin_in8 },
	{ TWIN_NAME_IN16, twin_in16 },
	{ TWIN_NAME_IN32, twin_in32 },
	{ TWIN_NAME_OUT8, twin_out8 },
	{ TWIN_NAME_OUT16, twin_out16 },
	{ TWIN_NAME_OUT32, twin_out32 },
	{ TWIN_NAME_WARN, twin_warn },
	{ TWIN_NAME_BUG, twin_bug },
	{ TWIN_NAME_SMASHED, twin_smashed },
	{ TWIN_NAME_WILD, twin_wild },
	{ NULL, NULL },
};

static bool is_same(const char *a, const char *b)
{
	while (*a && *a == *b) {
		a++;
		b++;
	}
	return *a == *b;
}

uint64_t twin_entry_address(const char *name)
{
	const struct twin_entry_point *entry;

	for (entry = twin_entry_points; entry->name; entry++)
		if (is_same(entry->name, name))
			return (uint64_t)entry->address;
	return 0;
}
