// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Several CPUs look up dom0's ranges while one thread adds them and takes them away.
 *
 * `shows` is the window: the page that each place shows. It is plain memory, written
 * before a range is added and when it is unmapped. So a reader that finds a range before
 * it is mapped, or keeps it beyond its time, sees another page there; and the thread
 * sanitizer proves that the range's publication and the gate alone order the two. The
 * places are at the window's end, of which the scheme window has a mirror.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <string.h>

#include "internal.h"
#include "random.h"
#include "test.h"

#define PAGE ((uint64_t)TWIN_PAGE_SIZE)
#define WINDOW 0x5000000000ull
#define FIRST (shape.size - 0x10000000)	/* the first place */

enum {
	CPUS = 4,
	PLACES = 6,
	RIVALS = 3,		/* pages of dom0's that want one place */
	LIMIT = PLACES,
#ifdef TSAN
	FINDS = 3000,		/* of each CPU */
#else
	FINDS = 30000,
#endif
	STEPS = 24,		/* look-ups between hold and release */
	PATIENCE = 1 << 22,	/* beyond the time slice of a preempted CPU */
};

static struct twin_window_shape shape;
static struct twin_range ranges[LIMIT];
static struct twin_instance instance;
static uint64_t shows[PLACES];
static uint32_t looking;	/* CPUs that look up */
static uint64_t wrong;

static uint64_t place_number(uint64_t va)
{
	return (va % shape.size - FIRST) / PAGE;
}

static void unmap_range(struct twin_instance *self, uint64_t start, uint64_t length)
{
	(void)self;
	CHECK_EQUAL(length, PAGE);
	CHECK_EQUAL(shows[place_number(start)], start);
	shows[place_number(start)] = 0;
}

static uint64_t set_gs_base(struct twin_instance *self, uint64_t base)
{
	(void)self;
	return base;
}

static const struct twin_platform_ops ops = {
	.unmap_range = unmap_range, .set_gs_base = set_gs_base,
};

static uint64_t random_number(uint64_t *state)
{
	return next_random(state) >> 11;
}

static uint64_t random_page(uint64_t *state)
{
	uint64_t place = FIRST + random_number(state) % PLACES * PAGE;

	return place + (1 + random_number(state) % RIVALS) * shape.size;
}

static void *look_up(void *seed)
{
	uint64_t state = *(uint64_t *)seed;
	unsigned int found = 0, i;

	while (found < FINDS) {
		twin_instance_hold(&instance);
		for (i = 0; i < STEPS; i++) {
			uint64_t page = random_page(&state), mapped;

			if (twin_translate(&instance, page + 8, &mapped))
				continue;
			found++;
			if (mapped != WINDOW + page % shape.size + 8 || shows[place_number(page)] != page)
				__atomic_fetch_add(&wrong, 1, __ATOMIC_RELAXED);
			if (twin_window_dom0(&instance, mapped) != page + 8)
				__atomic_fetch_add(&wrong, 1, __ATOMIC_RELAXED);
			mapped -= shape.mirror ? shape.size : 0;
			if (twin_window_dom0(&instance, mapped) != page + 8)
				__atomic_fetch_add(&wrong, 1, __ATOMIC_RELAXED);
		}
		twin_instance_release(&instance);
		sched_yield();
	}
	__atomic_fetch_sub(&looking, 1, __ATOMIC_RELAXED);
	return NULL;
}

/* Show the page, or take away what is at its place. */
static void change(uint64_t page)
{
	const struct twin_range range = { page, PAGE, 0 };
	struct twin_range other;
	int status = twin_window_admits(&instance, &range, &other);

	if (status == TWIN_COLLISION) {
		CHECK_EQUAL(shows[place_number(page)], other.start);
		while (twin_unmap(&instance, other.start, 1, PATIENCE) == TWIN_BUSY)
			;
		return;
	}
	CHECK_EQUAL(status, TWIN_OK);
	shows[place_number(page)] = page;
	CHECK_EQUAL(twin_window_add(&instance, &range, &other), TWIN_OK);
}

static void look_up_and_change(uint32_t scheme)
{
	const struct twin_instance_config config = {
		.scheme = scheme, .window = WINDOW, .ranges = ranges,
		.range_limit = LIMIT, .vector_free = 1, .ops = &ops,
	};
	uint64_t seeds[CPUS], state = 0x2545f4914f6cdd1d;
	pthread_t threads[CPUS];
	unsigned int i;

	shape = twin_window_shape_of(scheme);
	memset(shows, 0, sizeof(shows));
	wrong = 0;
	CHECK_EQUAL(twin_instance_init(&instance, &config), TWIN_OK);
	looking = CPUS;
	for (i = 0; i < CPUS; i++) {
		seeds[i] = 0x9e3779b97f4a7c15 * (i + 1);
		pthread_create(&threads[i], NULL, look_up, &seeds[i]);
	}
	while (__atomic_load_n(&looking, __ATOMIC_RELAXED))
		change(random_page(&state));
	for (i = 0; i < CPUS; i++)
		pthread_join(threads[i], NULL);
	CHECK_EQUAL(wrong, 0);
	CHECK_EQUAL(instance.gate.word, 0);
	CHECK(instance.statistics.refusals > 0);
}

static void a_range_is_found_while_it_is_there_and_no_longer(void)
{
	look_up_and_change(TWIN_SCHEME_WINDOW32);
}

static void so_it_is_in_the_larger_window(void)
{
	look_up_and_change(TWIN_SCHEME_WINDOW);
}

int main(void)
{
	RUN(a_range_is_found_while_it_is_there_and_no_longer);
	RUN(so_it_is_in_the_larger_window);
	return test_summary();
}
