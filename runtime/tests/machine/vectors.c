// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The machine tests: vector registers. Each runs for every width that the processor
 * has (one that it lacks is reported) and every way of saving; the host's, the
 * driver's and the initial value of each register differ.
 */
#include "machine.h"

#include <platform.h>

#define IMAGE		2112	/* bytes; see driver.S */
#define MASKS		2048
#define MXCSR		2104
#define REGISTER	64	/* bytes from one register to the next */
#define FIRST_MXCSR	0x1f80u
#define STATUS		0x3fu	/* of MXCSR: what has happened so far */

#define PER_WIDTH(X, width)							\
	X(vectors_at_entry, width) X(vectors_after_import, width)		\
	X(vectors_after_hot, width) X(vectors_after_slow, width)		\
	X(vectors_after_in, width) X(vectors_after_out, width)			\
	X(vectors_after_warn, width) X(vectors_call, width)			\
	X(vectors_called, width) X(vectors_bug, width)				\
	X(vectors_ud2, width) X(vectors_wild, width)
#define DECLARE_WIDTH(name, width) extern const char name##_##width[];
#define DECLARE_HOST(width)							\
	int enter_vectors_##width(struct twin_cpu *cpu, struct twin_instance *instance, \
				  const char *hyp, const uint64_t args[6], uint64_t *result); \
	void spoil_vectors_##width(void);
PER_WIDTH(DECLARE_WIDTH, 16)
PER_WIDTH(DECLARE_WIDTH, 32)
PER_WIDTH(DECLARE_WIDTH, 64)
DECLARE_HOST(16)
DECLARE_HOST(32)
DECLARE_HOST(64)

extern uint8_t vectors_host[IMAGE], vectors_driver[IMAGE], vectors_seen[IMAGE],
	vectors_kept[IMAGE];
extern uint32_t host_mxcsr;

struct width {
	unsigned int bytes, registers, masks;
	int (*enter)(struct twin_cpu *, struct twin_instance *, const char *, const uint64_t[6],
		     uint64_t *);
	void (*spoil)(void);
#define FIELD(name, width) const char *name;
	PER_WIDTH(FIELD, _)
};

#define FUNCTION(name, width) .name = name##_##width,
#define WIDTH(width, count, mask_count)						\
	{									\
		.bytes = width, .registers = count, .masks = mask_count,	\
		.enter = enter_vectors_##width, .spoil = spoil_vectors_##width,	\
		PER_WIDTH(FUNCTION, width)					\
	}
static const struct width widths[] = { WIDTH(16, 16, 0), WIDTH(32, 16, 0), WIDTH(64, 32, 7) };

static bool processor_has(unsigned int bytes)
{
	if (bytes == 16)
		return true;
	return bytes == 32 ? __builtin_cpu_supports("avx") : __builtin_cpu_supports("avx512f");
}

static void fill_images(void)
{
	unsigned int i;

	for (i = 0; i < MXCSR; i++) {
		vectors_host[i] = (uint8_t)(0x80 | i * 7);
		vectors_driver[i] = (uint8_t)(1 | i * 11 % 0x7f);
	}
	memset(vectors_seen, 0xee, IMAGE);
	memset(vectors_kept, 0xee, IMAGE);
}

static uint32_t mxcsr_of(const uint8_t *image)
{
	uint32_t value;

	memcpy(&value, image + MXCSR, 4);
	return value;
}

/* The bytes of image that this width has are those of wanted; NULL: zeroes. */
static bool is_image(const struct width *width, const uint8_t *image, const uint8_t *wanted)
{
	static const uint8_t zeroes[IMAGE];
	unsigned int i;

	wanted = wanted ? wanted : zeroes;
	for (i = 0; i < width->registers; i++)
		if (memcmp(image + REGISTER * i, wanted + REGISTER * i, width->bytes))
			return false;
	for (i = 0; i < width->masks; i++)
		if (memcmp(image + MASKS + 8 * i, wanted + MASKS + 8 * i, 2))
			return false;
	return true;
}

/* Enter with the host's registers full: they are as before afterwards. */
static int enter_full(const struct width *width, const char *function, uint64_t argument)
{
	const uint64_t args[6] = { argument };
	int status;

	fill_images();
	status = width->enter(cpu, instance, function, args, &result);
	CHECK(is_image(width, vectors_kept, vectors_host));
	CHECK_EQUAL(mxcsr_of(vectors_kept), host_mxcsr);
	return status;
}

/* The test for each width and each way of saving that this processor has. */
static void each_width(void (*test)(const struct width *width))
{
	static const enum vector_method methods[] = {
		VECTORS_XSAVEC, VECTORS_XSAVE, VECTORS_FXSAVE,
	};
	unsigned int m, w;

	for (m = 0; m < 3; m++) {
		for (w = 0; w < sizeof(widths) / sizeof(widths[0]); w++) {
			if (methods[m] == VECTORS_FXSAVE && widths[w].bytes > 16)
				continue;	/* it does not know them */
			if (!processor_has(widths[w].bytes)) {
				fprintf(stderr, "left out: vectors of %u bytes, which this "
					"processor has not\n", widths[w].bytes);
				continue;
			}
			set_up(TWIN_SCHEME_STLB);
			if (twin_testbed_vectors_start(methods[m]) == methods[m])
				test(&widths[w]);
			else
				fprintf(stderr, "left out: way %u of saving vectors, which this "
					"processor has not\n", methods[m]);
			tear_down();
		}
	}
}

static void sees_none(const struct width *width)
{
	CHECK_EQUAL(enter_full(width, width->vectors_at_entry, 0), TWIN_OK);
	CHECK(is_image(width, vectors_seen, NULL));
	CHECK_EQUAL(mxcsr_of(vectors_seen), FIRST_MXCSR);
	/* Nor its own values from the last time. */
	CHECK_EQUAL(enter_full(width, width->vectors_at_entry, 0), TWIN_OK);
	CHECK(is_image(width, vectors_seen, NULL));
}

void the_driver_sees_no_vector_of_the_host(void)
{
	each_width(sees_none);
}

static int abort_import(struct twin_call_frame *frame)
{
	(void)frame;
	return TWIN_ABORTED;
}

static void renew(void)
{
	tear_down();
	set_up(TWIN_SCHEME_STLB);
}

static void survive(const struct width *width)
{
	CHECK_EQUAL(enter_full(width, width->vectors_bug, 0), TWIN_ABORTED);
	CHECK_EQUAL(enter_full(width, width->vectors_at_entry, 0), TWIN_DEAD);
	renew();
	CHECK_EQUAL(enter_full(width, width->vectors_ud2, 0), TWIN_ABORTED);
	renew();
	CHECK_EQUAL(enter_full(width, width->vectors_wild, BALLOON), TWIN_ABORTED);
	renew();
	CHECK_EQUAL(enter_full(width, width->vectors_call, VM_DOUBLE + 1), TWIN_ABORTED);
	renew();
	CHECK_EQUAL(enter_full(width, width->vectors_after_in, 0x20), TWIN_ABORTED);
	renew();
	host.import = abort_import;
	CHECK_EQUAL(enter_full(width, width->vectors_after_import, 0), TWIN_ABORTED);
}

void the_hosts_vectors_survive_every_end(void)
{
	each_width(survive);
}

static void leave_none(const struct width *width)
{
	host.spoil = width->spoil;
	CHECK_EQUAL(enter_full(width, width->vectors_after_import, 0), TWIN_OK);
	CHECK(is_image(width, vectors_seen, NULL));
	CHECK_EQUAL(mxcsr_of(vectors_seen), FIRST_MXCSR);
	CHECK_EQUAL(enter_full(width, width->vectors_after_hot, DATA), TWIN_OK);
	CHECK(is_image(width, vectors_seen, NULL));
}

void imports_leave_no_vector_to_the_driver(void)
{
	each_width(leave_none);
}

static void keeps(const struct width *width, const char *function, uint64_t argument)
{
	CHECK_EQUAL(enter_full(width, function, argument), TWIN_OK);
	CHECK(is_image(width, vectors_seen, vectors_driver));
}

static void keep(const struct width *width)
{
	host.spoil = width->spoil;
	host.called = width->vectors_called;
	keeps(width, width->vectors_after_slow, DATA);	/* a fill, then a hit */
	keeps(width, width->vectors_after_slow, DATA);
	keeps(width, width->vectors_after_slow, cpu->driver_low);
	keeps(width, width->vectors_after_in, 0x300);
	keeps(width, width->vectors_after_out, 0x300);
	keeps(width, width->vectors_after_warn, 0);
	keeps(width, width->vectors_call, VM_CALLED);	/* resolved by the host, then cached */
	keeps(width, width->vectors_call, VM_CALLED);
}

void what_is_no_call_keeps_the_drivers_vectors(void)
{
	each_width(keep);
}

static const struct width *inner;

/* The host's import enters the driver again, with other values in all registers. */
static int enter_again(struct twin_call_frame *frame)
{
	static bool again;

	if (again)
		return TWIN_OK;
	again = true;
	frame->rax = enter_full(inner, inner->vectors_at_entry, 0);
	CHECK(is_image(inner, vectors_seen, NULL));
	again = false;
	return TWIN_OK;
}

static void nest(const struct width *width)
{
	inner = width;
	host.import = enter_again;
	CHECK_EQUAL(enter_full(width, width->vectors_after_import, 0), TWIN_OK);
	CHECK(is_image(width, vectors_seen, NULL));
	CHECK_EQUAL(mxcsr_of(vectors_seen), FIRST_MXCSR);
}

void nested_entries_have_vectors_of_their_own(void)
{
	each_width(nest);
}

static void of_each_other(const struct width *width)
{
	const uint64_t args[6] = { 0 };

	/* One fills all registers on its way out; nothing runs before the next. */
	CHECK_EQUAL(enter_full(width, width->vectors_at_entry, 0), TWIN_OK);
	renew();
	CHECK_EQUAL(twin_enter(cpu, instance, (uint64_t)width->vectors_at_entry, args, NULL),
		    TWIN_OK);
	CHECK(is_image(width, vectors_seen, NULL));
}

void instances_see_no_vector_of_each_other(void)
{
	each_width(of_each_other);
}

/* The driver's divisions do not reach the host's status, nor its rounding the
 * driver's results. */
void mxcsr_is_the_hosts_again(void)
{
	set_up(TWIN_SCHEME_STLB);
	CHECK_EQUAL(enter_full(&widths[0], driver_inexact, 0), TWIN_OK);
	CHECK_EQUAL(mxcsr_of(vectors_kept) & STATUS, 0);
	tear_down();
}

static int spoil_x87(struct twin_call_frame *frame)
{
	uint16_t word = 0x27f;

	(void)frame;
	__asm__ volatile("fldz\n\tfldz\n\tfldcw %0" : : "m"(word));
	return TWIN_OK;
}

void x87_is_the_hosts_again(void)
{
	const uint16_t mine = 0xf7f, usual = 0x37f;
	uint16_t kept = 0;
	double one = 0;

	set_up(TWIN_SCHEME_STLB);
	host.import = spoil_x87;
	__asm__ volatile("fld1\n\tfldcw %0" : : "m"(mine));
	CHECK_EQUAL(enter(driver_import, 0, 0), TWIN_OK);
	__asm__ volatile("fstpl %0\n\tfnstcw %1\n\tfldcw %2"
			 : "=m"(one), "=m"(kept) : "m"(usual));
	CHECK(one == 1.0);
	CHECK_EQUAL(kept, mine);
	tear_down();
}

/* With the flag, by which a loader says that no code uses them, nothing is saved or
 * cleared. */
void an_instance_without_vectors_pays_nothing(void)
{
	set_up_with(TWIN_SCHEME_STLB, 1);
	fill_images();
	CHECK_EQUAL(widths[0].enter(cpu, instance, widths[0].vectors_at_entry, (uint64_t[6]){ 0 },
				    &result), TWIN_OK);
	CHECK(is_image(&widths[0], vectors_seen, vectors_host));
	CHECK(is_image(&widths[0], vectors_kept, vectors_driver));
	tear_down();
}

#define AC 0x40000ull
#define NT 0x4000ull
#define DF 0x400ull

/* AC would let the driver's accesses fault, or reach users' pages. */
void the_hosts_flags_are_put_aside(void)
{
	static const uint64_t patterns[] = { 0, AC, NT, AC | NT };
	const uint64_t args[6] = { 0 };
	unsigned int i;

	for (i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++) {
		host_flags = patterns[i];
		set_up(TWIN_SCHEME_STLB);
		CHECK_EQUAL(enter_flags(cpu, instance, driver_flags_seen, args, &result), TWIN_OK);
		CHECK_EQUAL(result & (AC | NT | DF), 0);
		CHECK_EQUAL(host_flags_kept & (AC | NT | DF), patterns[i]);
		CHECK_EQUAL(enter_flags(cpu, instance, driver_bug, args, &result), TWIN_ABORTED);
		CHECK_EQUAL(host_flags_kept & (AC | NT | DF), patterns[i]);
		tear_down();
	}
}
