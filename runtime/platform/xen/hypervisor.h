/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What the platform uses of Xen: names, layouts and numbers, declared anew.
 *
 * Functions and variables are Xen's own; the hypervisor resolves them when it loads the
 * payload. Numbers that differ between builds are twin_value_*: the builder of the payload
 * defines each from the table of the build that the payload is for, and the payload is
 * loaded by no other build.
 *
 * Layouts that appear here as structs are of Xen's public headers (registers, grants) or
 * of its livepatch interface, which do not change.
 */
#ifndef TWIN_XEN_HYPERVISOR_H
#define TWIN_XEN_HYPERVISOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- Numbers of the build ------------------------------------------------ */

/* Bytes from a field of struct cpu_info to the end of the struct. */
extern const uint64_t twin_value_cpu_info_processor_id;
extern const uint64_t twin_value_cpu_info_current_vcpu;
extern const uint64_t twin_value_cpu_info_cr4;
/* Offsets of fields. */
extern const uint64_t twin_value_vcpu_domain;
extern const uint64_t twin_value_vcpu_guest_table;
extern const uint64_t twin_value_domain_domain_id;
extern const uint64_t twin_value_domain_vcpu;
extern const uint64_t twin_value_domain_refcnt;
extern const uint64_t twin_value_domain_dirty_cpumask;
extern const uint64_t twin_value_page_info_size;
extern const uint64_t twin_value_page_info_type_info;
extern const uint64_t twin_value_pirq_pirq;
/* Addresses. */
extern const uint64_t twin_value_frame_table;
extern const uint64_t twin_value_directmap;

/* ---- Objects that are opaque here ---------------------------------------- */

struct domain;
struct vcpu;
struct pirq;
struct page_info;

/* The word at an offset of an object. */
#define XEN_FIELD(type, object, offset) (*(type *)((char *)(object) + (offset)))

/* Registers at an exception (xen/arch-x86/xen-x86_64.h, struct cpu_user_regs). */
struct xen_registers {
	uint64_t r15, r14, r13, r12, rbp, rbx, r11, r10, r9, r8, rax, rcx, rdx, rsi, rdi;
	uint32_t error_code, entry_vector;
	uint64_t rip, cs, rflags, rsp, ss;
};
_Static_assert(offsetof(struct xen_registers, rip) == 128, "rip");
_Static_assert(offsetof(struct xen_registers, rsp) == 152, "rsp");

/* ---- This processor ------------------------------------------------------- */

/* The end of struct cpu_info, which is that of Xen's stack, whose size is 32 KiB. */
#define XEN_STACK_SIZE	0x8000ull

/* The same wherever a function is on its stack: not volatile, so that it is found once. */
static inline uint64_t xen_cpu_info_end(void)
{
	uint64_t rsp;

	__asm__("movq %%rsp, %0" : "=r"(rsp));
	return (rsp | (XEN_STACK_SIZE - 1)) + 1;
}

static inline uint32_t xen_processor(void)
{
	return *(uint32_t *)(xen_cpu_info_end() - twin_value_cpu_info_processor_id);
}

static inline struct vcpu *xen_current(void)
{
	return *(struct vcpu **)(xen_cpu_info_end() - twin_value_cpu_info_current_vcpu);
}

/* CR4 as Xen caches it. */
static inline uint64_t xen_cr4(void)
{
	return *(uint64_t *)(xen_cpu_info_end() - twin_value_cpu_info_cr4);
}

#define XEN_CR4_FSGSBASE	(1ull << 16)
#define XEN_CR4_CET		(1ull << 23)

static inline struct domain *xen_domain_of(struct vcpu *vcpu)
{
	return XEN_FIELD(struct domain *, vcpu, twin_value_vcpu_domain);
}

static inline uint16_t xen_domain_id(struct domain *domain)
{
	return XEN_FIELD(uint16_t, domain, twin_value_domain_domain_id);
}

#define XEN_FLAGS_IF 0x200ull

static inline uint64_t xen_interrupts_off(void)
{
	uint64_t flags;

	__asm__ volatile("pushfq; popq %0; cli" : "=r"(flags)::"memory");
	return flags;
}

static inline void xen_interrupts_restore(uint64_t flags)
{
	__asm__ volatile("pushq %0; popfq" ::"r"(flags) : "memory", "cc");
}

extern char per_cpu__curr_vcpu[];
extern unsigned long __per_cpu_offset[];

/* The virtual processor whose state a processor, which is online, has loaded. */
static inline struct vcpu *xen_loaded(uint32_t processor)
{
	return *(struct vcpu **)(per_cpu__curr_vcpu + __per_cpu_offset[processor]);
}

/* ---- Memory ---------------------------------------------------------------- */

#define XEN_PAGE_PRESENT	(1ull << 0)
#define XEN_PAGE_LARGE		(1ull << 7)
/* Present, writable, accessed, dirty; not the user's. */
#define XEN_PAGE_TABLE		0x63ull
#define XEN_PAGE_NX		(1ull << 63)
#define XEN_PAGE_ADDRESS	0x000ffffffffff000ull

/* page_info.type_info: the type in the top three bits, and a bit for "validated". */
#define XEN_TYPE_SHIFT		61
#define XEN_TYPE_L2		2ull
#define XEN_TYPE_L3		3ull
#define XEN_TYPE_L4		4ull
#define XEN_TYPE_WRITABLE	7ull

extern uint64_t idle_pg_table[512];
extern unsigned long max_page;
extern struct domain *hardware_domain;
extern uint64_t cpu_online_map[];

bool __mfn_valid(unsigned long frame);
bool get_page(struct page_info *page, const struct domain *domain);
void put_page(struct page_info *page);
int get_page_type(struct page_info *page, unsigned long type);
void put_page_type(struct page_info *page);
void *alloc_xenheap_pages(unsigned int order, unsigned int flags);
void free_xenheap_pages(void *pages, unsigned int order);
void flush_area_mask(const void *mask, const void *address, unsigned int flags);
#define XEN_FLUSH_TLB_ALL	0x300	/* FLUSH_TLB | FLUSH_TLB_GLOBAL */

/* Bytes that could not be copied, of the calling domain's memory. */
unsigned int copy_from_guest_pv(void *to, const void *from, unsigned int bytes);
unsigned int copy_to_guest_pv(void *to, const void *from, unsigned int bytes);

void *memcpy(void *to, const void *from, size_t bytes);
void *memset(void *to, int byte, size_t bytes);

static inline struct page_info *xen_page_of(uint64_t frame)
{
	return (struct page_info *)(twin_value_frame_table + frame * twin_value_page_info_size);
}

static inline uint64_t xen_type_info(struct page_info *page)
{
	return __atomic_load_n(&XEN_FIELD(uint64_t, page, twin_value_page_info_type_info),
			       __ATOMIC_ACQUIRE);
}

/* A machine address in Xen's map of all memory, and back. */
static inline void *xen_at(uint64_t machine)
{
	return (void *)(twin_value_directmap + machine);
}

static inline uint64_t xen_machine(const void *address)
{
	return (uint64_t)address - twin_value_directmap;
}

/* ---- Domains ---------------------------------------------------------------- */

/* With a reference, or NULL. */
struct domain *get_domain_by_id(uint16_t id);
void domain_destroy(struct domain *domain);

/* put_domain: the last reference destroys it. */
static inline void xen_put_domain(struct domain *domain)
{
	if (!__atomic_sub_fetch(&XEN_FIELD(uint32_t, domain, twin_value_domain_refcnt), 1,
				__ATOMIC_SEQ_CST))
		domain_destroy(domain);
}

/* A page that a domain grants to ldom, with a reference: 0, or GNTST_*. */
int16_t acquire_grant_for_copy(struct domain *domain, uint32_t reference, uint16_t ldom,
			       bool readonly, unsigned long *frame, struct page_info **page,
			       uint16_t *offset, uint16_t *length, bool transitive);
void release_grant_for_copy(struct domain *domain, uint32_t reference, bool readonly);

/* ---- Interrupts, events, tasklets -------------------------------------------- */

/* struct tasklet has no more than this in the builds that there are tables for. */
struct xen_tasklet {
	uint64_t words[16];
};

/* struct timer has no more than this in the builds that there are tables for. */
struct xen_timer {
	uint64_t words[16];
};

void init_timer(struct xen_timer *timer, void (*function)(void *), void *data,
		unsigned int processor);
void set_timer(struct xen_timer *timer, int64_t time);
void stop_timer(struct xen_timer *timer);
void kill_timer(struct xen_timer *timer);
int64_t get_s_time(void);

void softirq_tasklet_init(struct xen_tasklet *tasklet, void (*function)(void *), void *data);
void tasklet_schedule(struct xen_tasklet *tasklet);
void tasklet_kill(struct xen_tasklet *tasklet);
void pirq_guest_eoi(struct pirq *pirq);

static inline uint32_t xen_pirq_number(const struct pirq *pirq)
{
	return XEN_FIELD(const uint32_t, pirq, twin_value_pirq_pirq);
}

/* ---- Console ------------------------------------------------------------------ */

void printk(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* At most `size` bytes, the zero included; %pS is a symbol, as printk prints it. */
int snprintf(char *text, unsigned long size, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
#define XEN_WARNING "<1>"
#define XEN_INFO "<2>"
/* What a guest can have said as often as it likes: Xen prints some of them in five seconds (console.c). */
#define XEN_GUEST_WARNING "<G><1>"

/* ---- Livepatch ------------------------------------------------------------------ */

struct livepatch_payload;

/* A hook that may refuse: preapply and prerevert, called in dom0's hypercall, and revert, called in
 * place of Xen's own function with all processors stopped. */
#define XEN_HOOK(kind, function)							\
	static int (*const hook_##kind)(struct livepatch_payload *)			\
		__attribute__((used, section(".livepatch.hooks." #kind))) = function

/*
 * Xen's function `symbol` is replaced by `by` while the payload is applied; the builder
 * makes the loader's row of this. twin_original_<symbol> does what it did before.
 */
struct twin_replacement {
	const char *name;
	const void *by;
};
#define XEN_REPLACE(symbol, replacement)						\
	static const struct twin_replacement replace_##symbol				\
		__attribute__((used, section(".twin.replace"))) = { #symbol, replacement }

long twin_original_search_exception_table(struct xen_registers *registers, uint64_t *stub);
void twin_original_do_page_fault(struct xen_registers *registers);
void twin_original_do_double_fault(struct xen_registers *registers);
void twin_original_send_guest_pirq(struct domain *domain, struct pirq *pirq);
int twin_original_evtchn_send(struct domain *domain, unsigned int port);
int twin_original_cpu_down(unsigned int processor);
/* Masks of processors begin with a word for the first 64. */
void twin_original_flush_area_mask(const void *mask, const void *address, unsigned int flags);
void twin_original_on_selected_cpus(const void *mask, void (*function)(void *), void *data, int wait);

#endif /* TWIN_XEN_HYPERVISOR_H */
