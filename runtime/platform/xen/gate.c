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

/* For twin_unmap, of which this platform has no use: dom0's own page tables say what is
 * there, at once. Nothing here calls it. */
static void unmap_range(struct twin_instance *instance, uint64_t start, uint64_t length)
{
	(void)instance;
	printk(XEN_WARNING "twin: %lx..%lx stays in the window\n", start, start + length);
}

/* The console is slow, and driver code may do nothing else: it sees the first ones. */
#define WARNINGS 16u

static void warn(struct twin_instance *instance, uint64_t site)
{
	if (instance->statistics.warnings <= WARNINGS)
		printk(XEN_WARNING "twin: WARN of the driver at %pS\n", (void *)site);
}

/*
 * No set_gs_base: around calls out of the driver the base stays the window's. They lead to this platform and
 * to functions of Xen's, with interrupts off, and neither uses GS. A driver that is frozen in one leaves
 * through twin_enter.
 */
static const struct twin_platform_ops ops = {
	.unmap_range = unmap_range,
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

static int prepare_processors(void)
{
	uint32_t i;

	for (i = 0; i < TWIN_XEN_CPUS; i++)
		if (xen_seen[i].cpu && twin_prepare_quick(xen_seen[i].cpu, &xen_instance))
			return -XEN_EINVAL;
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
		.gs_is_set = 1,
		.ops = &ops,
	};
	int status;

	if (twin_instance_init(&xen_instance, &config))
		return -XEN_EINVAL;
	status = add_ranges();
	if (!status)
		status = add_code();
	return status ? status : prepare_processors();
}

/* ---- Running it ---------------------------------------------------------------- */

/*
 * The GS base is the window's start from here to leave_gs(), and what it was is noted where
 * calls out of the driver find it (gs_is_set). Asked each time: CR4.FSGSBASE is a guest's
 * choice, and the base is the guest's, too.
 */
static inline void enter_gs(struct twin_cpu *cpu, bool by_instruction)
{
	if (by_instruction)
		__asm__ volatile("rdgsbase %%rax; movq %%rax, %0; wrgsbase %1; lfence"
				 : "=m"(cpu->host_gs) : "r"(XEN_WINDOW) : "rax", "memory");
	else
		__asm__ volatile("rdmsr; movl %%eax, %0; movl %%edx, 4+%0;"
				 "xorl %%eax, %%eax; movl %2, %%edx; wrmsr"
				 : "=m"(cpu->host_gs)
				 : "c"(MSR_GS_BASE), "i"((uint32_t)(XEN_WINDOW >> 32))
				 : "rax", "rdx", "memory", "cc");
}

static inline void leave_gs(const struct twin_cpu *cpu, bool by_instruction)
{
	if (by_instruction)
		__asm__ volatile("wrgsbase %0; lfence" ::"r"(cpu->host_gs) : "memory");
	else
		__asm__ volatile("movl %0, %%eax; movl 4+%0, %%edx; wrmsr" ::"m"(cpu->host_gs),
				 "c"(MSR_GS_BASE) : "rax", "rdx", "memory");
}

_Static_assert((uint32_t)XEN_WINDOW == 0, "eax");

/* Alignment check and nested task (SDM vol. 1, 3.4.3), which driver code may not have set:
 * AC would let its accesses fault, or reach users' pages. Xen clears both when it is entered. */
#define UNWANTED_FLAGS 0x44000ull

_Static_assert(offsetof(struct xen_seen, root) == XEN_SEEN_ROOT &&
	       offsetof(struct xen_seen, cpu) == XEN_SEEN_CPU &&
	       offsetof(struct xen_seen, turn) == XEN_SEEN_TURN &&
	       offsetof(struct xen_seen, entries) == XEN_SEEN_ENTRIES &&
	       offsetof(struct xen_seen, awaited) == XEN_SEEN_AWAITED &&
	       sizeof(struct xen_seen) == 1 << XEN_SEEN_SHIFT && TWIN_XEN_CPUS == XEN_SEEN_COUNT,
	       "run.S");

/* xen_run() where something is not as run.S wants it. */
int xen_run_slowly(const void *function, uint64_t a0, uint64_t a1, uint64_t a2, uint64_t *result)
{
	const uint64_t flags = xen_interrupts_off();
	const uint32_t processor = xen_processor();
	const bool by_instruction = xen_cr4() & XEN_CR4_FSGSBASE;
	struct xen_seen *seen = &xen_seen[processor % TWIN_XEN_CPUS];
	int status = TWIN_INVALID;

	if (processor < TWIN_XEN_CPUS && seen->cpu) {
		if (__builtin_expect(flags & UNWANTED_FLAGS, 0))
			xen_interrupts_restore(flags & ~(UNWANTED_FLAGS | XEN_FLAGS_IF));
		xen_clock_enter(seen);
		xen_alias_ready(processor);
		enter_gs(seen->cpu, by_instruction);
		status = twin_enter_quick(seen->cpu, (uint64_t)function, a0, a1, a2, result);
		leave_gs(seen->cpu, by_instruction);
		xen_clock_leave(seen);
		if (status == TWIN_OK || status == TWIN_ABORTED || status == TWIN_FROZEN)
			seen->entries++;
	}
	xen_interrupts_restore(flags);
	if (__builtin_expect(status == TWIN_ABORTED, 0))
		xen_report(twin_instance_report(&xen_instance));
	return status;
}

/* The end of xen_run() after an abort. */
int xen_run_aborted(void)
{
	xen_report(twin_instance_report(&xen_instance));
	return TWIN_ABORTED;
}

int xen_resume(uint64_t rax)
{
	const uint64_t flags = xen_interrupts_off();
	const uint32_t processor = xen_processor();
	const bool by_instruction = xen_cr4() & XEN_CR4_FSGSBASE;
	struct xen_seen *seen = &xen_seen[processor % TWIN_XEN_CPUS];
	uint64_t result;
	int status;

	xen_clock_enter(seen);
	xen_alias_ready(processor);
	enter_gs(seen->cpu, by_instruction);
	status = twin_resume(seen->cpu, &xen_instance, rax, &result);
	leave_gs(seen->cpu, by_instruction);
	xen_clock_leave(seen);
	xen_interrupts_restore(flags);
	if (status == TWIN_ABORTED)
		xen_report(twin_instance_report(&xen_instance));
	return status;
}

void xen_forsake(void)
{
	twin_abandon(xen_seen[xen_processor() % TWIN_XEN_CPUS].cpu, &xen_instance);
	xen_report(twin_instance_report(&xen_instance));
}
