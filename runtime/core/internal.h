/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Declarations shared by the core's files, entry_x86_64.S and the unit tests.
 * Not for platforms or hosts.
 *
 * Memory order. Shared words are accessed with the compiler's __atomic
 * builtins. On x86 (TSO, SDM vol. 3, 9.2) an acquire load and a release store
 * are plain moves: stores become visible in program order, and loads are
 * performed in program order. Emitted code relies on that: it loads an
 * entry's tag and then its translation with plain moves.
 */
#ifndef TWIN_INTERNAL_H
#define TWIN_INTERNAL_H

#include <twin/runtime.h>
#include <twin/window.h>

#define PAGE_MASK ((uint64_t)TWIN_PAGE_SIZE - 1)

/* Where a call would cost each packet. */
#define INLINE static inline __attribute__((always_inline))

static inline uint64_t page_of(uint64_t va)
{
	return va & ~PAGE_MASK;
}

/* Index of va's entry, in entries. */
static inline uint32_t stlb_index(uint64_t va)
{
	return (va >> TWIN_PAGE_SHIFT) & (TWIN_STLB_ENTRIES - 1);
}

static inline void cpu_relax(void)
{
	__asm__ volatile("pause" ::: "memory");
}

/* A spinlock. Never held across driver code, nor taken twice by a CPU. */
static inline void lock(struct twin_lock *lock)
{
	while (__atomic_exchange_n(&lock->held, 1, __ATOMIC_ACQUIRE))
		while (__atomic_load_n(&lock->held, __ATOMIC_RELAXED))
			cpu_relax();
}

/* For whoever may not wait. */
static inline bool try_lock(struct twin_lock *lock)
{
	return !__atomic_exchange_n(&lock->held, 1, __ATOMIC_ACQUIRE);
}

static inline void unlock(struct twin_lock *lock)
{
	__atomic_store_n(&lock->held, 0, __ATOMIC_RELEASE);
}

static inline void count(uint64_t *counter)
{
	__atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
}

/* The core calls no library, also where a compiler would: memcpy would be rep movsb too. */
static inline void copy(void *to, const void *from, uint64_t size)
{
	__asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(size) : : "memory");
}

static inline bool is_dead(const struct twin_instance *instance)
{
	return __atomic_load_n(&instance->dead, __ATOMIC_ACQUIRE) != 0;
}

/* Whether dom0's memory is reached through a window and not by a table. */
static inline bool has_window(const struct twin_instance *instance)
{
	return instance->window != 0;
}

/*
 * While driver code runs, the GS base is the window's start. Code of the core uses no
 * GS and runs with either; around code of the host, hot routines excepted, these two are called, on the
 * CPU that the driver runs on. The host's base is noted anew each time, as host code may change it.
 * A host whose code uses no GS either need not change it (set_gs_base).
 */
static inline void gs_to_driver(struct twin_cpu *cpu)
{
	struct twin_instance *instance = cpu->instance;

	if (instance->switches_gs)
		cpu->host_gs = instance->ops->set_gs_base(instance, instance->window);
}

static inline void gs_to_host(const struct twin_cpu *cpu)
{
	if (cpu->instance->switches_gs)
		cpu->instance->ops->set_gs_base(cpu->instance, cpu->host_gs);
}

/* Where driver code's accesses relative to rsp go: with a window, to the data stack. They
 * are cut to 32 bits whatever the window's size is (twin_window_add_stack). */
static inline uint64_t data_at(const struct twin_instance *instance, uint64_t rsp)
{
	return has_window(instance) ? instance->window + (uint32_t)rsp : rsp;
}

/* Have the next CPU that enters while none is inside call maintain() (gate.c). */
static inline void wish_maintenance(struct twin_instance *instance)
{
	if (!__atomic_load_n(&instance->maintain, __ATOMIC_RELAXED))
		__atomic_store_n(&instance->maintain, 1, __ATOMIC_RELAXED);
}

/* Around what happens once in many entries: its code lies elsewhere. */
#define RARE(condition) __builtin_expect(!!(condition), 0)

/*
 * gate.c. Enter spins while the gate is closed; the first CPU to enter does the
 * requested maintenance (wish_maintenance). Close is false if another CPU has
 * closed it, or one inside does not leave within `patience` polls.
 */
#define TWIN_GATE_CLOSED 0x80000000u
void twin_gate_enter(struct twin_instance *instance);
bool twin_gate_close(struct twin_gate *gate, uint64_t patience);
void twin_gate_open(struct twin_gate *gate);

/* twin_gate_enter where nothing is in the way: the gate is open, nobody enters at the same
 * moment, no maintenance is due. */
static inline void pass_gate(struct twin_instance *instance)
{
	uint32_t *word = &instance->gate.word;
	uint32_t seen = __atomic_load_n(word, __ATOMIC_RELAXED);

	if (RARE(__atomic_load_n(&instance->maintain, __ATOMIC_RELAXED)) ||
	    RARE(seen & TWIN_GATE_CLOSED) ||
	    RARE(!__atomic_compare_exchange_n(word, &seen, seen + 1, true, __ATOMIC_ACQUIRE,
					      __ATOMIC_RELAXED)))
		twin_gate_enter(instance);
}

static inline void leave_gate(struct twin_gate *gate)
{
	__atomic_fetch_sub(&gate->word, 1, __ATOMIC_RELEASE);
}

/* stlb.c; init: [setup], promote: only with the gate closed */
#define TWIN_PROMOTE_HITS 64	/* slow-path answers that make a page hot */
void twin_stlb_init(struct twin_instance *instance);
void twin_stlb_promote(struct twin_instance *instance);

/* ranges.c; drop: only with the gate closed, the others inside or held */
uint64_t twin_window_layout(void);	/* a number that no instance has had */
bool twin_window_has_stack(const struct twin_instance *instance, const struct twin_cpu *cpu);
int twin_window_translate(struct twin_instance *instance, uint64_t va, uint64_t *mapped);
void twin_window_drop(struct twin_instance *instance, uint64_t first_page, uint64_t pages);

/* call.c; init: [setup], flush and maintain: only with the gate closed */
#define TWIN_CALL_FLUSH 1024	/* collisions after which the cache starts anew */
void twin_call_init(struct twin_instance *instance);
void twin_call_flush(struct twin_instance *instance);
void twin_call_maintain(struct twin_instance *instance);
uint32_t twin_call_index(uint64_t vm);

/*
 * Called by entry_x86_64.S on the host's stack, with the driver's registers
 * in cpu->saved, those of a hot routine's caller in its frame. The comment after each is the return value that makes assembly
 * abort; the report is then written. An abort never skips a C frame.
 */
uint64_t twin_slow_path(struct twin_cpu *cpu, uint64_t va, uint64_t site);	/* 0 */
uint64_t twin_call_slow(struct twin_cpu *cpu, uint64_t vm, uint64_t site);	/* 0 */
int64_t twin_port_in(struct twin_cpu *cpu, uint16_t port, uint32_t size, uint64_t site); /* < 0 */
int twin_port_out(struct twin_cpu *cpu, uint16_t port, uint32_t size, uint32_t value,
		  uint64_t site);						/* not 0 */
void twin_warn_site(struct twin_cpu *cpu, uint64_t site);
void twin_bug_site(struct twin_cpu *cpu, uint64_t site);
void twin_stopped_site(struct twin_cpu *cpu, uint64_t site);
void twin_smashed_site(struct twin_cpu *cpu, uint64_t site);
void twin_wild_site(struct twin_cpu *cpu, uint64_t site);
int twin_enter_slowly(struct twin_cpu *cpu, uint64_t hyp, uint64_t a0, uint64_t a1, uint64_t a2,
		      uint64_t *result);		/* in place of twin_enter_quick */
int twin_import(struct twin_cpu *cpu, uint64_t number);				/* not 0 */
int twin_run_hot(struct twin_cpu *cpu, struct twin_call_frame *frame);		/* not 0 */

/* entry_x86_64.S */
int twin_run_driver(struct twin_cpu *cpu, uint64_t hyp, const uint64_t args[6],
		    uint64_t *result);
int twin_run_frozen(struct twin_cpu *cpu, uint64_t *result);
extern const char twin_entry_text_start[], twin_entry_text_end[];

#endif /* TWIN_INTERNAL_H */
