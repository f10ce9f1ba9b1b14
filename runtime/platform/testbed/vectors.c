// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Vector state by XSAVE and XRSTOR (SDM vol. 1, chapter 13), or by FXSAVE where the
 * operating system has not enabled those.
 *
 * Saves and clears the processor's x87, SSE, AVX and AVX-512 state;
 * <twin/runtime.h> says why no more. Areas lie on stacks, so XSAVEOPT cannot be used:
 * it omits components that it assumes to be in the area since the last XRSTOR (13.9),
 * and other frames have been there since. XSAVEC omits only components in their
 * initial state.
 *
 * Runs while registers hold the driver's or the host's vectors: compiled without
 * them, and calls nothing.
 */
#include <cpuid.h>
#include <stddef.h>

#include "platform.h"

/* Bits of XCR0 (SDM vol. 1, 13.1): x87, SSE, AVX; masks, upper halves of zmm0-15 and
 * zmm16-31. */
#define COMPONENTS 0xe7u
#define AVX_COMPONENT 2u

/* In an area (SDM vol. 1, 10.5.1 and 13.4.2). */
enum { FCW = 0, MXCSR = 24 / 8, HEADER = 512 / 8, HEADER_WORDS = 64 / 8 };
/* Initial x87 control word and MXCSR: every exception masked. */
enum { FIRST_FCW = 0x37f, FIRST_MXCSR = 0x1f80 };

/* Header of zeroes: XRSTOR takes the initial state of every component, but MXCSR
 * from the area; FXRSTOR takes all from it. */
static const struct twin_vectors first = { .words = { [FCW] = FIRST_FCW, [MXCSR] = FIRST_MXCSR } };

/* The instruction and the components, set by twin_testbed_vectors_start. One word, so
 * that a thread which starts another driver writes the same again atomically. */
static uint32_t chosen;

static uint32_t chosen_method(void)
{
	return __atomic_load_n(&chosen, __ATOMIC_RELAXED) >> 8;
}

static uint32_t chosen_components(void)
{
	return __atomic_load_n(&chosen, __ATOMIC_RELAXED) & 0xff;
}

/* ---- What there is ------------------------------------------------------ */

static uint32_t enabled_components(void)
{
	uint32_t low, high;

	__asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
	return low & COMPONENTS;
}

static bool has_xsave(void)
{
	uint32_t a, b, c, d;

	return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_OSXSAVE);
}

static bool has_xsavec(void)
{
	uint32_t a, b, c, d;

	return __get_cpuid_count(0xd, 1, &a, &b, &c, &d) && (a & bit_XSAVEC);
}

/* Where the last of the components ends in the standard format (CPUID leaf 0xd). */
static uint32_t standard_bytes(uint32_t components)
{
	uint32_t size, offset, c, d, i, end = (HEADER + HEADER_WORDS) * 8;

	for (i = AVX_COMPONENT; i < 8; i++) {
		if (!(components >> i & 1))
			continue;
		if (!__get_cpuid_count(0xd, i, &size, &offset, &c, &d))
			return UINT32_MAX;
		if (offset + size > end)
			end = offset + size;
	}
	return end;
}

enum vector_method twin_testbed_vectors_start(enum vector_method best)
{
	enum vector_method method = VECTORS_FXSAVE;
	uint32_t components = 0;

	if (best > VECTORS_FXSAVE && has_xsave()) {
		components = enabled_components();
		method = best > VECTORS_XSAVE && has_xsavec() ? VECTORS_XSAVEC : VECTORS_XSAVE;
		if (standard_bytes(components) > TWIN_VECTOR_BYTES)
			return VECTORS_UNKNOWN;
	}
	__atomic_store_n(&chosen, method << 8 | components, __ATOMIC_RELAXED);
	return method;
}

/* ---- Saving and restoring ------------------------------------------------ */

/* XSAVE writes one word of the header and XSAVEC two; XRSTOR requires the others to
 * be zero. Volatile, so that the compiler does not call memset. */
static void clear_header(struct twin_vectors *state)
{
	volatile uint64_t *header = state->words + HEADER;
	uint32_t i;

	for (i = 0; i < HEADER_WORDS; i++)
		header[i] = 0;
}

void twin_testbed_vector_save(struct twin_instance *instance, struct twin_vectors *state)
{
	(void)instance;
	if (chosen_method() == VECTORS_FXSAVE) {
		__asm__ volatile("fxsave64 %0" : "=m"(*state));
		return;
	}
	clear_header(state);
	if (chosen_method() == VECTORS_XSAVEC)
		__asm__ volatile("xsavec64 %0"
				 : "+m"(*state) : "a"(chosen_components()), "d"(0));
	else
		__asm__ volatile("xsave64 %0"
				 : "+m"(*state) : "a"(chosen_components()), "d"(0));
}

void twin_testbed_vector_restore(struct twin_instance *instance, const struct twin_vectors *state)
{
	(void)instance;
	if (chosen_method() == VECTORS_FXSAVE)
		__asm__ volatile("fxrstor64 %0" : : "m"(*state));
	else
		__asm__ volatile("xrstor64 %0"
				 : : "m"(*state), "a"(chosen_components()), "d"(0));
}

void twin_testbed_vector_clear(struct twin_instance *instance)
{
	twin_testbed_vector_restore(instance, &first);
}
