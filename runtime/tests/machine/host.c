// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The machine tests: the host that driver.S runs on (dom0's memory, imports,
 * ports), set-up and tear-down of an instance, entry, the expected report of an abort.
 */
#include "machine.h"

int memory_fd;
uint64_t *memory;	/* all of the file, as dom0 sees it */
uint8_t *stubs;
struct twin_testbed *user;
struct twin_instance *instance;
struct twin_cpu *cpu, *other_cpu;
uint64_t result;

struct host host;

/* A host that uses the vector registers, as libc may. */
static void spoil_vectors(void)
{
	if (host.spoil) {
		host.spoil();
		return;
	}
	__asm__ volatile("pcmpeqd %%xmm0, %%xmm0\n\tpcmpeqd %%xmm7, %%xmm7\n\t"
			 "pcmpeqd %%xmm15, %%xmm15" ::: "xmm0", "xmm7", "xmm15");
}

static void note_direction(void)
{
	uint64_t flags;

	__asm__ volatile("pushfq\n\tpopq %0" : "=r"(flags));
	host.backward |= flags >> 10 & 1;
}

static uint64_t host_resolve(void *data, uint64_t vm)
{
	(void)data;
	spoil_vectors();
	if (vm == VM_CALLED)
		return (uint64_t)host.called;
	return vm == VM_KERNEL ? import_stub : 0;
}

static int host_import(void *data, struct twin_call_frame *frame)
{
	(void)data;
	note_direction();
	spoil_vectors();
	host.last = *frame;
	return host.import ? host.import(frame) : TWIN_OK;
}

static uint32_t host_in(void *data, uint16_t port, uint32_t size)
{
	(void)data;
	note_direction();
	spoil_vectors();
	host.port = port;
	host.size = size;
	return 0x89abcdef & (0xffffffffu >> (32 - 8 * size));
}

static void host_out(void *data, uint16_t port, uint32_t size, uint32_t value)
{
	(void)data;
	note_direction();
	spoil_vectors();
	host.port = port;
	host.size = size;
	host.value = value;
}

static void host_warn(void *data, uint64_t site)
{
	(void)data;
	note_direction();
	spoil_vectors();
	host.warnings++;
	host.warn_site = site;
}

int hot_read(struct twin_cpu *self, struct twin_call_frame *frame)
{
	uint64_t mapped;
	int refusal;

	spoil_vectors();
	refusal = twin_translate(self->instance, frame->rdi, &mapped);

	if (refusal) {
		twin_abort_record(self, TWIN_ABORT_ACCESS, refusal, frame->rdi, frame->site);
		return TWIN_ABORTED;
	}
	frame->rax = *(uint64_t *)mapped;
	return TWIN_OK;
}

static const struct twin_port_range ports[] = { { 0x300, 0x31f } };
static const struct twin_codemap_entry codemap[] = {
	{ VM_DOUBLE, (uint64_t)driver_double },
	{ VM_IMAGE, (uint64_t)driver_image },
};

void add_region(uint64_t start, uint64_t pages, uint64_t file_page, bool writable,
		bool there)
{
	const struct twin_testbed_region region = {
		.dom0_start = start, .length = pages * PAGE, .file_offset = file_page * PAGE,
		.fd = there ? memory_fd : -1, .writable = writable,
	};

	CHECK_EQUAL(twin_testbed_add_region(user, &region), TWIN_OK);
}

uint32_t gs_is_set;

void set_up(uint32_t scheme)
{
	set_up_with(scheme, 0);
}

void set_up_with(uint32_t scheme, uint32_t vector_free)
{
	const bool windowed = twin_window_shape_of(scheme).size;
	const struct twin_testbed_config config = {
		.scheme = scheme, .windows = 64, .stlb = windowed ? NULL : twin_stlb, .ports = ports,
		.port_count = 1, .vector_free = vector_free, .gs_is_set = gs_is_set,
		.window = windowed ? window_of(scheme) : 0,
		.stack_view = windowed ? view_of_scheme(scheme) : 0,
		.host = {
			.resolve_upcall = host_resolve, .import = host_import, .port_in = host_in,
			.port_out = host_out, .warn = host_warn,
		},
	};
	unsigned int i;

	for (i = 0; i < FILE_PAGES * PAGE / 8; i++)
		memory[i] = 0x1000000 + i;
	memset(&host, 0, sizeof(host));
	user = twin_testbed_create(&config);
	instance = twin_testbed_instance(user);
	add_region(DATA, 4, 0, true, true);
	add_region(DATA + 4 * PAGE, 1, 8, true, true);
	add_region(RODATA, 1, 9, false, true);
	add_region(BALLOON, 1, 0, true, false);
	add_region(BEYOND, 1, FILE_PAGES, true, true);
	twin_instance_set_codemap(instance, codemap, 2);
	twin_instance_add_text(instance, (uint64_t)driver_text_start, (uint64_t)driver_text_end);
	twin_instance_add_text(instance, (uint64_t)stubs, (uint64_t)stubs + PAGE);
	result = 0xdead;
}

void tear_down(void)
{
	CHECK_EQUAL(instance->gate.word, 0);
	CHECK(!cpu->instance && !cpu->in_driver && !cpu->may_nest);
	twin_testbed_destroy(user);
}

int enter6(const char *function, const uint64_t args[6])
{
	return twin_enter(cpu, instance, (uint64_t)function, args, &result);
}

int enter(const char *function, uint64_t a, uint64_t b)
{
	const uint64_t args[6] = { a, b };

	return enter6(function, args);
}

/* What dom0 has at a page of the file. */
uint64_t word(uint64_t file_page, uint64_t offset)
{
	uint64_t value;

	memcpy(&value, (char *)memory + file_page * PAGE + offset, 8);
	return value;
}

void aborts_with(const char *function, uint64_t a, uint64_t b, uint32_t kind,
		 uint64_t address)
{
	const struct twin_abort_report *report;

	result = 0xdead;
	CHECK_EQUAL(enter(function, a, b), TWIN_ABORTED);
	CHECK_EQUAL(result, 0xdead);
	report = twin_instance_report(instance);
	CHECK(report);
	if (!report)
		return;
	CHECK_EQUAL(report->kind, kind);
	CHECK_EQUAL(report->address, address);
	CHECK_EQUAL(report->entry_function, (uint64_t)function);
	CHECK(!memcmp(report, &cpu->report, sizeof(*report)));
	/* The instance is dead; this process is not. */
	CHECK_EQUAL(enter(driver_double, 2, 0), TWIN_DEAD);
}

bool reported_rip_within(uint64_t start, uint64_t end)
{
	return cpu->report.rip >= start && cpu->report.rip < end;
}
