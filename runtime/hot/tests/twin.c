// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * For test-hot-twin: the same tests with the rewritten hot routines. Every
 * call of a hot routine enters the rewritten one through the runtime; its data
 * stays the native object's (paper, 4.3: one data instance), and its calls to other
 * routines come back as imports. Windows are the identity, as in the paper's own
 * VM instance (5.1.2), so that one process is enough.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <twin/runtime.h>
#include <twin/testbed.h>
#include "test.h"

typedef uint64_t (*native)(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t);

#define NODES		16384
#define POINTERS	64

/* From names.sh: what hot.o imports, by number, and where the code map is. */
extern const native test_imports[];
extern const uint64_t test_imports_count;
extern const struct twin_codemap_entry __start_hot_codemap[], __stop_hot_codemap[];

struct twin_stlb_entry twin_stlb[TWIN_STLB_ENTRIES] __attribute__((aligned(4096)));

static struct twin_node nodes[NODES];
static struct twin_instance instance;
static struct twin_codemap_entry codemap[1024];
static __thread struct twin_cpu *cpu;

/* Native functions reached by pointer: import numbers from test_imports_count on. */
static pthread_mutex_t pointers_lock = PTHREAD_MUTEX_INITIALIZER;
static native pointers[POINTERS];
static uint32_t pointer_count;
static uint8_t *stubs;

static int map_window(struct twin_instance *i, uint64_t page, uint64_t *mapped)
{
	*mapped = page;
	return TWIN_MAPPED;
}

static void unmap_window(struct twin_instance *i, uint64_t page, uint64_t mapped)
{
}

/* pointers_lock held. The import number of a pointer, less test_imports_count;
 * POINTERS if there are too many. */
static uint32_t number_of(native pointer)
{
	uint32_t n;

	for (n = 0; n < pointer_count; n++)
		if (pointers[n] == pointer)
			return n;
	if (n < POINTERS) {
		pointers[n] = pointer;
		twin_testbed_write_import(stubs + n * TWIN_TESTBED_STUB, test_imports_count + n);
		pointer_count = n + 1;
	}
	return n;
}

/* The runtime may ask on several CPUs at once. */
static uint64_t resolve_upcall(struct twin_instance *i, uint64_t vm)
{
	uint32_t n;

	pthread_mutex_lock(&pointers_lock);
	n = number_of((native)vm);
	pthread_mutex_unlock(&pointers_lock);
	return n < POINTERS ? (uint64_t)stubs + n * TWIN_TESTBED_STUB : 0;
}

static int import(struct twin_instance *i, struct twin_call_frame *frame)
{
	uint64_t n = frame->target;
	native f = n < test_imports_count ? test_imports[n] : pointers[n - test_imports_count];

	frame->rax = f(frame->rdi, frame->rsi, frame->rdx, frame->rcx, frame->r8, frame->r9);
	return TWIN_OK;
}

static const struct twin_platform_ops ops = {
	.map_window = map_window,
	.unmap_window = unmap_window,
	.resolve_upcall = resolve_upcall,
	.import = import,
};

static int by_vm(const void *a, const void *b)
{
	uint64_t x = ((const struct twin_codemap_entry *)a)->vm;
	uint64_t y = ((const struct twin_codemap_entry *)b)->vm;

	return x < y ? -1 : x > y;
}

static void start(void)
{
	const struct twin_instance_config config = {
		.scheme = TWIN_SCHEME_STLB,
		.stlb = twin_stlb,
		.nodes = nodes,
		.node_count = NODES,
		.vector_free = 1,	/* kbuild's flags: -mno-sse -mno-avx */
		.ops = &ops,
	};
	uint64_t count = __stop_hot_codemap - __start_hot_codemap;

	stubs = mmap(NULL, POINTERS * TWIN_TESTBED_STUB, PROT_READ | PROT_WRITE | PROT_EXEC,
		     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memcpy(codemap, __start_hot_codemap, count * sizeof(codemap[0]));
	qsort(codemap, count, sizeof(codemap[0]), by_vm);
	if (stubs == MAP_FAILED || twin_instance_init(&instance, &config) ||
	    twin_instance_set_codemap(&instance, codemap, count)) {
		fprintf(stderr, "test-hot-twin: no instance\n");
		exit(2);
	}
}

/* main.c calls it on each new thread. */
void test_thread_start(unsigned long gs_base)
{
	if (!stubs)
		start();
	if (!cpu)
		cpu = twin_testbed_block_create(0);
	if (!cpu) {
		perror("twin_testbed_block_create");
		exit(2);
	}
	cpu->gs_base = gs_base;
}

void test_thread_stop(void)
{
	twin_testbed_block_destroy(cpu);
	cpu = NULL;
}

void test_report(void)
{
	printf("test-hot-twin: %lu entries, %lu imports, %lu windows, %lu aborts\n",
	       instance.statistics.entries, instance.statistics.imports,
	       instance.statistics.fills, instance.statistics.aborts);
}

/* From names.sh's stubs run_*: the rewritten routine with these arguments. */
uint64_t test_enter(uint64_t hyp, const uint64_t args[6])
{
	uint64_t result = 0;
	int status = twin_enter(cpu, &instance, hyp, args, &result);

	if (status != TWIN_OK) {
		fprintf(stderr, "test-hot-twin: status %d, abort %u at %#lx, address %#lx\n", status,
			cpu->report.kind, cpu->report.rip, cpu->report.address);
		exit(1);
	}
	return result;
}
