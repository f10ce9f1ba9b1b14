// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Into driver code and back.
 *
 * Interrupts are off from before the window is used until after: an interrupt's frame of
 * Xen would lie on the control stack, and a context switch would change page tables and
 * the GS base underneath. The GS base is the window's start while driver code runs. Xen
 * itself uses no GS and keeps a guest's base in the register; what saves it there is a
 * context switch, which cannot happen meanwhile. Every end of the driver, an abort among
 * them, comes back through twin_enter, which restores it.
 */
#include "platform.h"

#define MSR_GS_BASE 0xc0000101u

struct twin_instance xen_instance;

/* dom0's slots, and three parts of each data stack. */
#define RANGES (XEN_WINDOW_SLOTS + 3 * TWIN_XEN_CPUS)
static struct twin_range ranges[RANGES];

/* ---- Operations ----------------------------------------------------------- */

/* CR4.FSGSBASE is a guest's choice, so it is asked each time. */
static uint64_t set_gs_base(struct twin_instance *instance, uint64_t base)
{
	uint32_t low, high;
	uint64_t old;

	(void)instance;
	if (xen_cr4() & XEN_CR4_FSGSBASE) {
		__asm__ volatile("rdgsbase %0" : "=r"(old));
		/* No later access is made ahead with the base before. */
		__asm__ volatile("wrgsbase %0; lfence" ::"r"(base) : "memory");
		return old;
	}
	__asm__ volatile("rdmsr" : "=a"(low), "=d"(high) : "c"(MSR_GS_BASE));
	__asm__ volatile("wrmsr" ::"c"(MSR_GS_BASE), "a"((uint32_t)base),
			 "d"((uint32_t)(base >> 32)) : "memory");
	return low | (uint64_t)high << 32;
}

/* For twin_unmap, of which this platform has no use: dom0's own page tables say what is
 * there, at once. Nothing here calls it. */
static void unmap_range(struct twin_instance *instance, uint64_t start, uint64_t length)
{
	(void)instance;
	printk(XEN_WARNING "twin: %lx..%lx stays in the window\n", start, start + length);
}

static void warn(struct twin_instance *instance, uint64_t site)
{
	(void)instance;
	printk(XEN_WARNING "twin: WARN of the driver at %pS\n", (void *)site);
}

static const struct twin_platform_ops ops = {
	.unmap_range = unmap_range,
	.set_gs_base = set_gs_base,
	.import = xen_import,
	.warn = warn,
};

/* ---- The instance ----------------------------------------------------------- */

/* What the window shows, so that reports have dom0's addresses. Stacks first: each entry
 * looks for its own. */
static int add_ranges(void)
{
	const uint32_t *slots = xen_alias_slots();
	struct twin_range other;
	uint32_t i;

	for (i = 0; i < TWIN_XEN_CPUS; i++)
		if (twin_window_add_stack(&xen_instance, xen_block_context(i), &other))
			return -XEN_EINVAL;
	for (i = 0; i < XEN_WINDOW_SLOTS; i++) {
		const struct twin_range range = {
			XEN_SLOT(slots[i]), 1ull << XEN_SLOT_SHIFT, 0,
		};

		if (slots[i] && twin_window_add(&xen_instance, &range, &other))
			return -XEN_EINVAL;
	}
	return 0;
}

static int add_code(void)
{
	uint64_t i;

	if (twin_instance_set_codemap(&xen_instance, twin_payload_codemap,
				      twin_payload_codemap_count))
		return -XEN_EINVAL;
	for (i = 0; i < twin_payload_text_count; i++)
		if (twin_instance_add_text(&xen_instance, twin_payload_text[i].start,
					   twin_payload_text[i].end))
			return -XEN_EINVAL;
	return 0;
}

int xen_instance_create(void)
{
	const struct twin_instance_config config = {
		.scheme = twin_payload_scheme,
		.window = XEN_WINDOW,
		.stack_view = XEN_STACK_VIEW,
		.ranges = ranges,
		.range_limit = RANGES,
		.vector_free = twin_payload_vector_free,
		.ops = &ops,
	};
	int status;

	if (twin_instance_init(&xen_instance, &config))
		return -XEN_EINVAL;
	status = add_ranges();
	return status ? status : add_code();
}

/* ---- Running it ---------------------------------------------------------------- */

static int enter(uint64_t function, const uint64_t args[6], uint64_t *result)
{
	const uint32_t processor = xen_processor();
	struct twin_cpu *cpu;
	int status;

	/* One more than at attach has come. */
	if (processor >= TWIN_XEN_CPUS)
		return TWIN_INVALID;
	xen_alias_ready();
	cpu = xen_block_context(processor);
	cpu->gs_base = xen_device.given.gs_base[processor];
	xen_clock_enter(processor);
	status = twin_enter(cpu, &xen_instance, function, args, result);
	xen_clock_leave(processor);
	/* As the core counts them. Interrupts are off: nobody else writes this one. */
	if (status == TWIN_OK || status == TWIN_ABORTED)
		xen_counts.processor_entries[processor]++;
	return status;
}

int xen_run(const void *function, uint64_t a0, uint64_t a1, uint64_t a2, uint64_t *result)
{
	const uint64_t args[6] = { a0, a1, a2 };
	const uint64_t flags = xen_interrupts_off();
	const int status = enter((uint64_t)function, args, result);

	xen_interrupts_restore(flags);
	if (status == TWIN_ABORTED)
		xen_report(twin_instance_report(&xen_instance));
	return status;
}
