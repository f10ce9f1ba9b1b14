// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Entering the driver, and leaving it for an import or a hot routine.
 *
 * Stacks. Driver code runs on the block's stack. The runtime's C code runs on
 * the stack that twin_enter was called on, below its frame: the driver cannot
 * reach that stack, its size is the host's choice, and nesting needs no code:
 *
 *   host's stack                         driver stack
 *   ------------                         ------------
 *   caller
 *   twin_enter
 *   twin_run_driver's frame   -------->  return to twin_driver_return
 *                                        driver function
 *                                        ... calls an import
 *   twin_import               <--------
 *   platform's import
 *   twin_enter (nested)
 *   twin_run_driver's frame   -------->  further down on the driver stack
 *
 * With a window, the driver stack is the control stack. Driver code finds its variables
 * and stack arguments on the data stack, in the window at the place of rsp.
 */
#include <twin/dma.h>

#include "internal.h"
#include "offsets.h"

#define OFFSET(offset, field) _Static_assert((offset) == offsetof(struct twin_cpu, field), #field)

_Static_assert(offsetof(struct twin_cpu, fs_base) ==
	       TWIN_FS_BASE_FROM_TOP + TWIN_STACK_BLOCK - 1 - TWIN_STACK_CONTEXT, "fs_base");
_Static_assert(offsetof(struct twin_cpu, gs_base) ==
	       TWIN_GS_BASE_FROM_TOP + TWIN_STACK_BLOCK - 1 - TWIN_STACK_CONTEXT, "gs_base");
OFFSET(CPU_CALL_CACHE, call_cache);
OFFSET(CPU_HOST_RSP, host_rsp);
OFFSET(CPU_START_RSP, start_rsp);
OFFSET(CPU_IN_DRIVER, in_driver);
OFFSET(CPU_RAX, saved.rax);
OFFSET(CPU_RCX, saved.rcx);
OFFSET(CPU_RDX, saved.rdx);
OFFSET(CPU_RSI, saved.rsi);
OFFSET(CPU_RDI, saved.rdi);
OFFSET(CPU_R8, saved.r8);
OFFSET(CPU_R9, saved.r9);
OFFSET(CPU_R10, saved.r10);
OFFSET(CPU_R11, saved.r11);
OFFSET(CPU_FLAGS, saved.flags);
OFFSET(CPU_RSP, saved.rsp);
OFFSET(CPU_SITE, saved.site);
OFFSET(CPU_STOP, stop);
OFFSET(CPU_LOCKS, locks);
OFFSET(CPU_LOCK, lock);
OFFSET(CPU_INSTANCE, instance);
OFFSET(CPU_ENTRY_FUNCTION, entry_function);
OFFSET(CPU_HOST_GS, host_gs);
OFFSET(CPU_STACK_LAYOUT, stack_layout);
OFFSET(CPU_QUICK, quick);
OFFSET(CPU_KEPT, kept);
_Static_assert(STATUS_FROZEN == TWIN_FROZEN, "twin_import's result");
OFFSET(CPU_QUICK_RSP, quick_rsp);
_Static_assert(offsetof(struct twin_cpu, may_nest) == CPU_IN_DRIVER + 4, "stored together");
_Static_assert(CPU_LOCKS == CPU_STOP + 4, "stored together");
#define PUSHED(number, field) \
	_Static_assert((number) * 8 == offsetof(struct twin_call_frame, field), "twin_call_out: " #field)
PUSHED(0, rdi);
PUSHED(1, rsi);
PUSHED(2, rdx);
PUSHED(3, rcx);
PUSHED(4, r8);
PUSHED(5, r9);
PUSHED(6, rax);
PUSHED(7, stack);
PUSHED(8, site);
PUSHED(9, target);
_Static_assert(sizeof(struct twin_call_frame) == 80, "a whole number of 16 bytes");
#define INSTANCE(offset, field) \
	_Static_assert((offset) == offsetof(struct twin_instance, field), #field)
INSTANCE(INSTANCE_LAYOUT, layout);
INSTANCE(INSTANCE_GATE, gate.word);
INSTANCE(INSTANCE_DEAD, dead);
INSTANCE(INSTANCE_DEAD + 4, maintain);
INSTANCE(INSTANCE_ENTRIES, statistics.entries);
INSTANCE(INSTANCE_CALL_CACHE, call_cache);
_Static_assert(HELD_LOCKS == TWIN_HELD_LOCKS, "twin_note_lock's limit");
_Static_assert(sizeof(struct twin_held_lock) == 16, "twin_note_lock's entries");
_Static_assert(sizeof(struct twin_cpu) <= TWIN_PAGE_SIZE, "the context is one page");
_Static_assert(CALL_SHIFT == TWIN_CALL_SHIFT, "twin_stlb_call's hash");
_Static_assert(STATUS_ABORTED == TWIN_ABORTED, "twin_unwind's result");
_Static_assert(sizeof(struct twin_call_entry) == 16 && offsetof(struct twin_call_entry, hyp) == 8,
	       "twin_stlb_call's entries");

/* What a nested entry changes in the context. */
struct outer {
	struct twin_instance *instance;
	uint64_t host_rsp;
	/* Of the import's caller. The site among them: dom0 and nested driver code may write to its word on
	 * the driver stack. An import may enter more than once: each time from this rsp. */
	struct twin_registers saved;
	uint64_t entry_function;
	uint64_t kept[6];	/* of the outer import, if it freezes afterwards */
	uint64_t host_gs;	/* from a hot routine an entry finds the driver's base instead of the host's */
	uint32_t may_nest;
};

static void save_outer(const struct twin_cpu *cpu, struct outer *outer)
{
	uint32_t i;

	outer->instance = cpu->instance;
	outer->host_rsp = cpu->host_rsp;
	outer->saved = cpu->saved;
	outer->entry_function = cpu->entry_function;
	outer->may_nest = cpu->may_nest;
	outer->host_gs = cpu->host_gs;
	for (i = 0; i < 6; i++)
		outer->kept[i] = cpu->kept[i];
}

static void restore_outer(struct twin_cpu *cpu, const struct outer *outer)
{
	uint32_t i;

	cpu->instance = outer->instance;
	cpu->host_rsp = outer->host_rsp;
	cpu->saved = outer->saved;
	cpu->entry_function = outer->entry_function;
	cpu->may_nest = outer->may_nest;
	cpu->host_gs = outer->host_gs;
	for (i = 0; i < 6; i++)
		cpu->kept[i] = outer->kept[i];
}

/* Where a nested entry may begin. */
static uint64_t stack_top(const struct twin_cpu *cpu)
{
	return (cpu->saved.rsp - TWIN_BELOW_RSP) & ~15ull;
}

/* Stack arguments that were never given read as zero. Written one by one: a loop would be
 * three times as long. */
static inline void clear_incoming_args(const struct twin_instance *instance, uint64_t rsp)
{
	volatile uint64_t *argument = (volatile uint64_t *)data_at(instance, rsp);

	_Static_assert(TWIN_INCOMING_ARGS == 8 * sizeof(*argument), "eight");
	argument[0] = 0;
	argument[1] = 0;
	argument[2] = 0;
	argument[3] = 0;
	argument[4] = 0;
	argument[5] = 0;
	argument[6] = 0;
	argument[7] = 0;
}

/* ---- What is not in general registers ----------------------------------- */

/* Alignment check and nested task (SDM vol. 1, 3.4.3): the driver has no instruction
 * that sets them, and AC would let its accesses fault, or in a hypervisor reach
 * users' pages (SMAP). */
#define HOST_FLAGS 0x44000ull

/* Clears the host's own flags; gives those that were set. */
static inline uint64_t put_flags_aside(void)
{
	uint64_t flags = __builtin_ia32_readeflags_u64();

	if (RARE(flags & HOST_FLAGS))
		__builtin_ia32_writeeflags_u64(flags & ~HOST_FLAGS);
	return flags & HOST_FLAGS;
}

static inline void take_flags_back(uint64_t flags)
{
	if (RARE(flags))
		__builtin_ia32_writeeflags_u64(__builtin_ia32_readeflags_u64() | flags);
}

/* twin_run_driver with the host's vector state saved before and restored after; an
 * abort returns here too. Not inlined: the state is large, and most drivers need none. */
static __attribute__((noinline)) int run_shielded(struct twin_cpu *cpu, uint64_t hyp,
						  const uint64_t args[6], uint64_t *result)
{
	struct twin_instance *instance = cpu->instance;
	struct twin_vectors host;
	int status;

	instance->ops->vector_save(instance, &host);
	instance->ops->vector_clear(instance);
	status = twin_run_driver(cpu, hyp, args, result);
	instance->ops->vector_restore(instance, &host);
	return status;
}

/* gs: whether the GS base is to be set here, and the host's again. */
static inline int run(struct twin_cpu *cpu, uint64_t hyp, const uint64_t args[6],
		      uint64_t *result, bool gs)
{
	uint64_t flags = put_flags_aside();
	int status;

	if (gs)
		gs_to_driver(cpu);
	if (!RARE(!cpu->instance->vector_free))
		status = twin_run_driver(cpu, hyp, args, result);
	else
		status = run_shielded(cpu, hyp, args, result);
	if (gs)
		gs_to_host(cpu);
	take_flags_back(flags);
	return status;
}

/* ---- Entry --------------------------------------------------------------- */

/* Whether cpu is in an import of the same instance. */
static bool may_nest(const struct twin_cpu *cpu, const struct twin_instance *instance)
{
	return cpu->instance == instance && cpu->may_nest;
}

/* In the name of the function that was entered: the tail was written somewhere below it. */
static int abort_for(struct twin_cpu *cpu, const struct twin_dma_report *report)
{
	const uint32_t reason = TWIN_DMA_REASON(report->fault, report->kind, report->index);

	twin_abort_record(cpu, TWIN_ABORT_DMA, reason, report->address, cpu->entry_function);
	return TWIN_ABORTED;
}

/* Write-backs of the card become visible before the driver runs; its doorbells reach the
 * card after it has returned, if their descriptors are fine. Not inlined: the report is
 * large. */
static __attribute__((noinline)) int run_checked(struct twin_cpu *cpu, uint64_t hyp,
						 const uint64_t args[6], uint64_t *result,
						 bool gs)
{
	struct twin_dma *dma = cpu->instance->dma;
	struct twin_dma_report report;
	int status;

	if (!twin_dma_show(dma, &report))
		return abort_for(cpu, &report);
	status = run(cpu, hyp, args, result, gs);
	if (status == TWIN_OK && !twin_dma_ring(dma, &report))
		return abort_for(cpu, &report);
	return status;
}

/* Remembered, so that an entry asks once for each layout (twin_window_layout). */
static __attribute__((noinline)) bool look_for_stack(struct twin_cpu *cpu,
						     const struct twin_instance *instance)
{
	if (!twin_window_has_stack(instance, cpu))
		return false;
	cpu->stack_layout = instance->layout;
	return true;
}

static inline bool has_stack(struct twin_cpu *cpu, const struct twin_instance *instance)
{
	return !has_window(instance) || !RARE(cpu->stack_layout != instance->layout) ||
	       look_for_stack(cpu, instance);
}

/* Inside the gate. The first rsp of the driver is top. */
static inline int enter_at(struct twin_cpu *cpu, struct twin_instance *instance, uint64_t top,
			   uint64_t hyp, const uint64_t args[6], uint64_t *result, bool gs)
{
	if (RARE(is_dead(instance)))
		return TWIN_DEAD;
	if (!has_stack(cpu, instance))
		return TWIN_INVALID;
	count(&instance->statistics.entries);
	clear_incoming_args(instance, top);
	cpu->instance = instance;
	cpu->call_cache = instance->call_cache;
	cpu->entry_function = hyp;
	cpu->start_rsp = top;
	cpu->may_nest = 0;
	if (RARE(instance->dma))
		return run_checked(cpu, hyp, args, result, gs);
	return run(cpu, hyp, args, result, gs);
}

/* From an import. */
static __attribute__((noinline)) int enter_nested(struct twin_cpu *cpu,
						  struct twin_instance *instance, uint64_t hyp,
						  const uint64_t args[6], uint64_t *rax)
{
	const uint64_t top = stack_top(cpu) - TWIN_INCOMING_ARGS;
	struct outer outer;
	int status;

	if (!may_nest(cpu, instance))
		return TWIN_BUSY;
	if (top < cpu->driver_low + TWIN_PAGE_SIZE || top > cpu->driver_high)
		return TWIN_NO_STACK;
	save_outer(cpu, &outer);
	cpu->nested++;
	status = enter_at(cpu, instance, top, hyp, args, rax, has_window(instance));
	cpu->nested--;
	restore_outer(cpu, &outer);
	return status;
}

int twin_enter(struct twin_cpu *cpu, struct twin_instance *instance, uint64_t hyp,
	       const uint64_t args[6], uint64_t *result)
{
	uint64_t rax;
	int status;

	if (RARE(cpu->instance)) {
		status = enter_nested(cpu, instance, hyp, args, &rax);
	} else if (RARE(cpu->frozen)) {
		return TWIN_BUSY;
	} else {
		cpu->stop = 0;
		cpu->locks = 0;
		pass_gate(instance);
		status = enter_at(cpu, instance, cpu->driver_high - TWIN_INCOMING_ARGS, hyp, args,
				  &rax, instance->enters_gs);
		cpu->instance = NULL;
		leave_gate(&instance->gate);
	}
	if (status == TWIN_OK && result)
		*result = rax;
	return status;
}

/* ---- Quick entries ---------------------------------------------------------- */

int twin_prepare_quick(struct twin_cpu *cpu, struct twin_instance *instance)
{
	if (!has_window(instance) || instance->enters_gs || !instance->vector_free ||
	    instance->dma || !look_for_stack(cpu, instance))
		return TWIN_INVALID;
	cpu->quick = instance;
	cpu->quick_rsp = cpu->driver_high - TWIN_INCOMING_ARGS;
	return TWIN_OK;
}

/* Something is in the way of twin_enter_quick. */
int twin_enter_slowly(struct twin_cpu *cpu, uint64_t hyp, uint64_t a0, uint64_t a1, uint64_t a2,
		      uint64_t *result)
{
	const uint64_t args[6] = { a0, a1, a2 };

	return twin_enter(cpu, cpu->quick, hyp, args, result);
}

/* ---- Calls out of the driver ------------------------------------------- */

static inline void fill_frame(const struct twin_instance *instance, struct twin_call_frame *frame,
			      const struct twin_registers *saved, uint64_t target)
{
	const uint64_t *stack = (const uint64_t *)data_at(instance, saved->rsp);

	frame->rdi = saved->rdi;
	frame->rsi = saved->rsi;
	frame->rdx = saved->rdx;
	frame->rcx = saved->rcx;
	frame->r8 = saved->r8;
	frame->r9 = saved->r9;
	frame->rax = saved->rax;
	frame->site = saved->site;
	frame->stack = stack + 1;
	frame->target = target;
}

/*
 * The routine has returned. Registers that the psABI lets a call destroy keep
 * the driver's values unless the routine changed them in the frame. So no value
 * of the host leaks, and routines that promise to keep more registers than the
 * psABI requires (the kernel has some) need no other path.
 */
static inline void take_frame(struct twin_registers *saved, const struct twin_call_frame *frame)
{
	saved->rdi = frame->rdi;
	saved->rsi = frame->rsi;
	saved->rdx = frame->rdx;
	saved->rcx = frame->rcx;
	saved->r8 = frame->r8;
	saved->r9 = frame->r9;
	saved->rax = frame->rax;
}

static inline int perform(struct twin_instance *instance, struct twin_call_frame *frame)
{
	if (instance->ops->import)
		return instance->ops->import(instance, frame);
	return TWIN_ABORTED;
}

/* Write the report, unless the routine or an entry nested in it did. */
static __attribute__((noinline)) int abort_call(struct twin_cpu *cpu,
						const struct twin_call_frame *frame)
{
	enum twin_abort_kind kind = is_dead(cpu->instance) ? TWIN_ABORT_DEAD : TWIN_ABORT_IMPORT;

	if (cpu->report.kind == TWIN_ABORT_NONE)
		twin_abort_record(cpu, kind, 0, frame->target, frame->site);
	return TWIN_ABORTED;
}

/* No vector register is kept over a call (psABI 3.2.1), so the host's values in them
 * are cleared rather than replaced by the driver's. */
static void clear_vectors(struct twin_instance *instance)
{
	if (!instance->vector_free)
		instance->ops->vector_clear(instance);
}

/*
 * All of the driver's is in the context, where twin_resume takes it from. A context that has no
 * layout makes quick entries come by twin_enter, which refuses them.
 */
static __attribute__((noinline)) int freeze(struct twin_cpu *cpu, const struct twin_call_frame *frame)
{
	const struct twin_instance *instance = cpu->instance;

	if (cpu->nested || !has_window(instance) || !instance->vector_free || instance->dma)
		return abort_call(cpu, frame);
	cpu->frozen = cpu->instance;
	cpu->stack_layout = 0;
	return TWIN_FROZEN;
}

/* What a nested entry changes of the context is as before when it has ended (restore_outer). */
int twin_import(struct twin_cpu *cpu, uint64_t number)
{
	struct twin_instance *instance = cpu->instance;
	struct twin_call_frame frame;
	int status;

	count(&instance->statistics.imports);
	fill_frame(instance, &frame, &cpu->saved, number);
	cpu->report.kind = TWIN_ABORT_NONE;
	if (RARE(is_dead(instance)))
		return abort_call(cpu, &frame);
	cpu->may_nest = 1;
	gs_to_host(cpu);
	status = perform(instance, &frame);
	gs_to_driver(cpu);
	cpu->may_nest = 0;
	if (status == TWIN_FROZEN && !is_dead(instance))
		return freeze(cpu, &frame);
	if (RARE(status || is_dead(instance)))
		return abort_call(cpu, &frame);
	clear_vectors(instance);
	take_frame(&cpu->saved, &frame);
	return TWIN_OK;
}

/* The same for a hot routine, which uses no GS: the base stays the driver's. Assembly has filled the frame, but
 * for the stack, and takes the registers back from it. */
int twin_run_hot(struct twin_cpu *cpu, struct twin_call_frame *frame)
{
	struct twin_instance *instance = cpu->instance;
	int status;

	frame->stack = (const uint64_t *)data_at(instance, cpu->saved.rsp) + 1;
	cpu->report.kind = TWIN_ABORT_NONE;
	if (RARE(is_dead(instance)))
		return abort_call(cpu, frame);
	cpu->may_nest = 1;
	status = ((twin_hot_routine)frame->target)(cpu, frame);
	cpu->may_nest = 0;
	if (RARE(status || is_dead(instance)))
		return abort_call(cpu, frame);
	clear_vectors(instance);
	return TWIN_OK;
}

/* ---- Frozen driver code ------------------------------------------------------ */

int twin_resume(struct twin_cpu *cpu, struct twin_instance *instance, uint64_t rax,
		uint64_t *result)
{
	uint64_t value, flags;
	int status = TWIN_DEAD;

	if (cpu->instance || cpu->frozen != instance)
		return TWIN_INVALID;
	cpu->frozen = NULL;
	flags = put_flags_aside();
	pass_gate(instance);
	if (!is_dead(instance)) {
		cpu->instance = instance;
		cpu->call_cache = instance->call_cache;
		cpu->saved.rax = rax;
		if (instance->enters_gs)
			gs_to_driver(cpu);
		status = twin_run_frozen(cpu, &value);
		if (instance->enters_gs)
			gs_to_host(cpu);
		cpu->instance = NULL;
	}
	leave_gate(&instance->gate);
	take_flags_back(flags);
	if (status == TWIN_OK)
		*result = value;
	return status;
}

void twin_abandon(struct twin_cpu *cpu, struct twin_instance *instance)
{
	if (cpu->instance || cpu->frozen != instance)
		return;
	cpu->frozen = NULL;
	cpu->instance = instance;
	twin_abort_record(cpu, TWIN_ABORT_IMPORT, 0, (uint32_t)cpu->saved.r11, cpu->saved.site);
	cpu->instance = NULL;
}
