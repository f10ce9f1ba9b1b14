// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Several CPUs translate, collide and call at once, while one thread unmaps.
 *
 * Every mapping gets a window that was never used before. So a reader of a tag with
 * another mapping's translation, or of a translation kept beyond its mapping, finds a
 * window that shows another page or none.
 *
 * Built plainly, readers execute the emitted sequence's own loads. Built with
 * TSAN they acquire the tag, as any load does on x86; the translation and the page
 * that a window shows are plain memory: the sanitizer then proves that the tag
 * alone orders them, and that unmaps are ordered with every reader.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"
#include "random.h"
#include "test.h"

#define PAGE ((uint64_t)TWIN_PAGE_SIZE)
#define DOM0 0xffff888000000000ull
#define ALIAS (TWIN_STLB_ENTRIES * PAGE)
#define WINDOWS 0x10000000000ull

enum {
	CPUS = 4,
	INDICES = 3,		/* few table entries, many pages for each */
	ALIASES = 4,
	NODES = 2 * INDICES * ALIASES,
#ifdef TSAN
	ROUNDS = 3000,
#else
	ROUNDS = 30000,
#endif
	STEPS = 24,		/* accesses between entry and return */
	MAPPINGS = 1 << 22,
	PATIENCE = 1 << 22,	/* beyond the time slice of a preempted CPU */
};

static struct twin_stlb_entry stlb[TWIN_STLB_ENTRIES] __attribute__((aligned(4096)));
static struct twin_node nodes[NODES];
static struct twin_instance instance;
static uint64_t shows[MAPPINGS];	/* page that window n shows, or 0 */
static uint32_t mappings;
static uint32_t running;
static uint64_t wrong, misses, unmapped, busy;

static int fake_map(struct twin_instance *self, uint64_t page, uint64_t *mapped)
{
	(void)self;
	if (mappings == MAPPINGS)
		return TWIN_REFUSED_NO_SPACE;
	shows[mappings] = page;
	*mapped = WINDOWS + mappings++ * 3 * PAGE;
	return TWIN_MAPPED;
}

static void fake_unmap(struct twin_instance *self, uint64_t page, uint64_t mapped)
{
	(void)self;
	(void)page;
	shows[(mapped - WINDOWS) / (3 * PAGE)] = 0;
}

static uint64_t fake_resolve(struct twin_instance *self, uint64_t vm)
{
	(void)self;
	return vm ^ 0x5a5a5a5a;
}

static const struct twin_platform_ops ops = {
	.map_window = fake_map, .unmap_window = fake_unmap, .resolve_upcall = fake_resolve,
};

/* The emitted fast path: false for a miss. */
static bool fast_path(uint64_t va, uint64_t *translated)
{
	uint64_t index = (va >> TWIN_STLB_INDEX_SHIFT) & TWIN_STLB_INDEX_MASK;
	struct twin_stlb_entry *entry = (struct twin_stlb_entry *)((char *)stlb + index);
	uint64_t v = va;
#ifdef TSAN
	v -= __atomic_load_n(&entry->tag, __ATOMIC_ACQUIRE);
	if (v > PAGE - 1)
		return false;
	v += entry->xlate;
#else
	uint8_t miss;

	__asm__ volatile("subq (%[e]), %[v]\n\t"
			 "cmpq $0xfff, %[v]\n\t"
			 "seta %[miss]\n\t"
			 "ja 1f\n\t"
			 "addq 8(%[e]), %[v]\n"
			 "1:"
			 : [v] "+&r"(v), [miss] "=&q"(miss)
			 : [e] "r"(entry)
			 : "cc", "memory");
	if (miss)
		return false;
#endif
	*translated = v;
	return true;
}

static bool cached_call(uint64_t vm, uint64_t *hyp)
{
	struct twin_call_entry *entry = &instance.call_cache[twin_call_index(vm)];

	if (__atomic_load_n(&entry->vm, __ATOMIC_ACQUIRE) != vm)
		return false;
	*hyp = entry->hyp;
	return true;
}

static bool is_right(uint64_t va, uint64_t translated)
{
	uint64_t window = (translated - WINDOWS) / (3 * PAGE);

	return translated >= WINDOWS && window < MAPPINGS && shows[window] == (va & -PAGE) &&
	       (translated - WINDOWS) % (3 * PAGE) == (va & (PAGE - 1));
}

static void access_memory(struct twin_cpu *cpu, uint64_t random)
{
	uint64_t va = DOM0 + random % INDICES * PAGE + (random >> 8) % ALIASES * ALIAS +
		      (random >> 16) % PAGE;
	uint64_t translated;

	if (!fast_path(va, &translated)) {
		__atomic_fetch_add(&misses, 1, __ATOMIC_RELAXED);
		translated = twin_slow_path(cpu, va, 0);
	}
	if (!is_right(va, translated))
		__atomic_fetch_add(&wrong, 1, __ATOMIC_RELAXED);
}

static void call(struct twin_cpu *cpu, uint64_t random)
{
	uint64_t vm = 0xffffffff81000000ull + (random >> 32) % 2048 * 16, hyp;

	if (!cached_call(vm, &hyp))
		hyp = twin_call_slow(cpu, vm, 0);
	if (hyp != (vm ^ 0x5a5a5a5a))
		__atomic_fetch_add(&wrong, 1, __ATOMIC_RELAXED);
}

static void *run_cpu(void *block)
{
	struct twin_cpu *cpu = (struct twin_cpu *)((char *)block + TWIN_STACK_CONTEXT);
	uint64_t state = (uint64_t)block | 1;
	unsigned int round, step;

	for (round = 0; round < ROUNDS; round++) {
		twin_instance_hold(&instance);
		cpu->instance = &instance;
		for (step = 0; step < STEPS; step++) {
			uint64_t random = next_random(&state);

			access_memory(cpu, random);
			if (step % 4 == 0)
				call(cpu, random);
		}
		cpu->instance = NULL;
		twin_instance_release(&instance);
	}
	__atomic_fetch_sub(&running, 1, __ATOMIC_RELEASE);
	return NULL;
}

static void *run_unmapper(void *unused)
{
	uint64_t turn = 0;

	(void)unused;
	while (__atomic_load_n(&running, __ATOMIC_ACQUIRE)) {
		uint64_t page = DOM0 + turn % INDICES * PAGE + turn / 3 % ALIASES * ALIAS;
		int status = turn % 16 ? twin_unmap(&instance, page, 1, PATIENCE)
				       : twin_flush(&instance, PATIENCE);

		turn++;
		if (status == TWIN_OK)
			unmapped++;
		else
			busy++;
		sched_yield();
	}
	return NULL;
}

static void no_entry_is_ever_torn_or_stale(void)
{
	const struct twin_instance_config config = {
		.scheme = TWIN_SCHEME_STLB, .stlb = stlb, .nodes = nodes, .node_count = NODES,
		.ops = &ops, .vector_free = 1,
	};
	pthread_t threads[CPUS], unmapper;
	char *blocks = aligned_alloc(TWIN_STACK_BLOCK, CPUS * TWIN_STACK_BLOCK);
	unsigned int i;

	CHECK_EQUAL(twin_instance_init(&instance, &config), TWIN_OK);
	running = CPUS;
	for (i = 0; i < CPUS; i++) {
		char *block = blocks + i * TWIN_STACK_BLOCK;

		twin_cpu_init((struct twin_cpu *)(block + TWIN_STACK_CONTEXT));
		pthread_create(&threads[i], NULL, run_cpu, block);
	}
	pthread_create(&unmapper, NULL, run_unmapper, NULL);
	for (i = 0; i < CPUS; i++)
		pthread_join(threads[i], NULL);
	pthread_join(unmapper, NULL);
	free(blocks);

	CHECK_EQUAL(wrong, 0);
	CHECK_EQUAL(instance.gate.word, 0);
	CHECK_EQUAL(instance.statistics.aborts, 0);
	/* The test tested something. */
	CHECK(instance.statistics.fills > INDICES * ALIASES);
	CHECK(instance.statistics.collisions > 0);
	CHECK(instance.statistics.promotions > 0);
	CHECK(unmapped > 0);
	printf("fills %" PRIu64 ", collisions %" PRIu64 ", promotions %" PRIu64 ", unmaps %" PRIu64
	       ", busy %" PRIu64 "\n", instance.statistics.fills, instance.statistics.collisions,
	       instance.statistics.promotions, unmapped, busy);
}

/* CPUs translate the same new pages at the same time, without unmaps. */
static pthread_barrier_t barrier;

static void *fill_together(void *block)
{
	struct twin_cpu *cpu = (struct twin_cpu *)((char *)block + TWIN_STACK_CONTEXT);
	uint64_t page, translated;

	cpu->instance = &instance;
	pthread_barrier_wait(&barrier);
	for (page = DOM0; page < DOM0 + NODES / 2 * PAGE; page += PAGE) {
		if (!fast_path(page, &translated))
			translated = twin_slow_path(cpu, page, 0);
		if (!is_right(page, translated))
			__atomic_fetch_add(&wrong, 1, __ATOMIC_RELAXED);
	}
	cpu->instance = NULL;
	return NULL;
}

static void a_page_wanted_by_all_is_mapped_once(void)
{
	pthread_t threads[CPUS];
	char *blocks = aligned_alloc(TWIN_STACK_BLOCK, CPUS * TWIN_STACK_BLOCK);
	unsigned int round, i;

	wrong = 0;
	pthread_barrier_init(&barrier, NULL, CPUS);
	for (round = 0; round < 200; round++) {
		uint64_t before;

		CHECK_EQUAL(twin_flush(&instance, 0), TWIN_OK);
		before = instance.statistics.fills;
		for (i = 0; i < CPUS; i++) {
			char *block = blocks + i * TWIN_STACK_BLOCK;

			twin_cpu_init((struct twin_cpu *)(block + TWIN_STACK_CONTEXT));
			pthread_create(&threads[i], NULL, fill_together, block);
		}
		for (i = 0; i < CPUS; i++)
			pthread_join(threads[i], NULL);
		CHECK_EQUAL(instance.statistics.fills - before, NODES / 2);
	}
	CHECK_EQUAL(wrong, 0);
	free(blocks);
}

int main(void)
{
	RUN(no_entry_is_ever_torn_or_stale);
	RUN(a_page_wanted_by_all_is_mapped_once);
	return test_summary();
}
