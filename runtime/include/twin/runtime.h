/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The runtime of a rewritten driver: translation, calls, aborts, entry.
 *
 * Two objects:
 *
 *   struct twin_instance   one loaded driver; shared by all CPUs that run it
 *   struct twin_cpu        one CPU's context, the last page of its stack block
 *
 * The caller owns the memory of both and all memory passed to an instance;
 * the runtime allocates nothing. All addresses are virtual: "dom0" or "vm"
 * addresses are the driver domain's, "hyp" or mapped addresses are those that
 * the CPU uses here. A page has TWIN_PAGE_SIZE bytes and is named by the
 * address of its first byte.
 *
 * Contexts in which a function may be called are given as
 *   [setup]   by one thread, before the first or after the last twin_enter
 *   [any]     any thread, at any time; never sleeps; takes no lock unless said
 *   [inside]  between the driver's entry and its return on this CPU, in
 *             runtime C code: on the host's stack; never sleeps
 *   [outside] not inside
 *
 * Everything here is compiled without vector registers, so that a site's
 * vector state survives a slow path that calls no host code. The host's vector
 * state is saved and cleared before driver code runs, and restored after it: see
 * struct twin_vectors.
 */
#ifndef TWIN_RUNTIME_H
#define TWIN_RUNTIME_H

#include <stdbool.h>
#include <stdint.h>

#include <twin/abi.h>

/* ---- Status of an operation -------------------------------------------- */

enum twin_status {
	TWIN_OK = 0,
	TWIN_ABORTED = 1,	/* the driver was unwound; see the report */
	TWIN_DEAD = 2,		/* the instance had died earlier; nothing ran */
	TWIN_BUSY = 3,		/* not now: see the function */
	TWIN_NO_STACK = 4,	/* nested too deeply for the driver stack */
	TWIN_INVALID = 5,	/* an argument breaks the function's rules */
	TWIN_COLLISION = 6,	/* two ranges of dom0 would share a place in the window */
	TWIN_FROZEN = 7,	/* the driver waits for an import's result: twin_resume */
};

/* Why a platform refuses to map a window. 0 is success. */
enum twin_refusal {
	TWIN_MAPPED = 0,
	TWIN_REFUSED_NOT_DOM0 = 1,	/* the page is not dom0's */
	TWIN_REFUSED_UNMAPPED = 2,	/* dom0's, but nothing is there */
	TWIN_REFUSED_NO_SPACE = 3,	/* no window is free */
	TWIN_REFUSED_NO_NODE = 4,	/* the instance's nodes are used up */
};

/* ---- Aborts ------------------------------------------------------------ */

enum twin_abort_kind {
	TWIN_ABORT_NONE = 0,
	TWIN_ABORT_ACCESS = 1,		/* refused address; reason: twin_refusal */
	TWIN_ABORT_CALL = 2,		/* indirect call to a target in no table */
	TWIN_ABORT_BUG = 3,		/* the driver's own BUG */
	TWIN_ABORT_PORT = 4,		/* port refused; reason: bytes */
	TWIN_ABORT_STACK = 5,		/* driver stack overflow; reason: trap */
	TWIN_ABORT_FAULT = 6,		/* processor fault; reason: trap number */
	TWIN_ABORT_RESOURCES = 7,	/* no window or node; reason: twin_refusal */
	TWIN_ABORT_IMPORT = 8,		/* an imported routine asked for it */
	TWIN_ABORT_DEAD = 9,		/* another invocation had aborted */
	TWIN_ABORT_RETURN = 10,		/* return address overwritten; address: by what */
	TWIN_ABORT_DMA = 11,		/* a descriptor for the card; reason: TWIN_DMA_REASON
					 * (<twin/dma.h>), rip: the function entered */
	TWIN_ABORT_TIME = 12,		/* the clock stopped it: twin_stop */
};

/* A lock that driver code asked for by a noted routine (twin_note_lock), and has not
 * freed by one. Whether it has it or waits for it, the lock's word says. */
struct twin_held_lock {
	uint64_t address;	/* dom0 address */
	uint64_t site;		/* return address in driver code: who took it */
};

#define TWIN_HELD_LOCKS		8	/* of a CPU; any more are counted only */

/* The reason and place of an abort. */
struct twin_abort_report {
	uint32_t kind;		/* enum twin_abort_kind */
	uint32_t reason;	/* detail, see the kind */
	uint64_t address;	/* dom0 address, call target, port or import */
	uint64_t rip;		/* in driver code, if its stack tells: the site's return address;
				 * in the instruction, of a fault, a time limit and a descriptor */
	uint64_t entry_function;/* hyp address that twin_enter was given */
	uint32_t locks;		/* held; entries of lock[], unless there are more */
	uint32_t zero;
	struct twin_held_lock lock[TWIN_HELD_LOCKS];	/* in the order of taking */
};

_Static_assert(sizeof(struct twin_abort_report) == 40 + 16 * TWIN_HELD_LOCKS, "no padding");

/* ---- One CPU ----------------------------------------------------------- */

/*
 * The driver's registers while the runtime's C code runs for it. rbx, rbp and
 * r12-r15 are kept by the C code itself (psABI 3.2.1).
 */
struct twin_registers {
	uint64_t rax, rcx, rdx, rsi, rdi, r8, r9, r10, r11;
	uint64_t flags;
	uint64_t rsp;		/* as on entry: points to the site's return address */
	uint64_t site;		/* a copy of that address: the word may be overwritten */
};

struct twin_instance;

/*
 * The context page. Written by its own CPU only, so nothing in it needs a
 * lock. Emitted code reads the first two words and has no access to the rest.
 */
struct twin_cpu {
	uint64_t fs_base;	/* of dom0 on this CPU; the host keeps it current */
	uint64_t gs_base;

	/* Private to the runtime from here on. */
	struct twin_instance *instance;		/* being run, or NULL */
	struct twin_call_entry *call_cache;	/* the instance's, for assembly */
	uint64_t host_rsp;	/* twin_run_driver's frame: the runtime's stack */
	uint64_t start_rsp;	/* driver rsp for the next entry */
	uint32_t in_driver;	/* 1 while driver code runs on the driver stack */
	uint32_t may_nest;	/* 1 while an import runs: twin_enter is legal */
	uint64_t driver_low;	/* the driver stack: [low, high) */
	uint64_t driver_high;
	uint64_t entry_function;
	struct twin_registers saved;
	uint32_t stop;		/* 1: twin_stop found the CPU in the runtime */
	uint32_t locks;		/* held, by twin_note_lock */
	struct twin_held_lock lock[TWIN_HELD_LOCKS];
	struct twin_abort_report report;	/* of this CPU's last abort */
	uint64_t host_gs;	/* the host's GS base while the driver has its own (gs_is_set: by
				 * the host) */
	uint64_t stack_layout;	/* the instance's layout whose ranges have this data stack */
	struct twin_instance *quick;	/* of twin_prepare_quick, or NULL */
	uint64_t quick_rsp;		/* driver rsp of an outer entry */
	uint64_t kept[6];		/* rbx rbp r12-r15 of driver code in an import */
	struct twin_instance *frozen;	/* whose driver waits on this CPU, or NULL */
	uint64_t nested;		/* entries from imports, of this invocation */
};

/*
 * Prepare the context of a stack block. cpu must lie TWIN_STACK_CONTEXT bytes
 * into a block aligned to TWIN_STACK_BLOCK whose stack and shadow pages are
 * mapped and whose guard pages are not. The shadow must not be readable or
 * writable to anything else, dom0 in particular. One block serves one CPU. It may run
 * several instances one after the other, which can then read what the previous one
 * left on the stack. Choose block addresses where dom0 has nothing: the CPU's own
 * stack hides dom0 pages of the same address. For an instance with a window, choose
 * them so that their low 32 bits are no place of anything else (twin_window_add says
 * if they are), and are the place of the address plus stack_view (twin_window_add_stack
 * says if not); the shadow is not used then. [setup]
 */
int twin_cpu_init(struct twin_cpu *cpu);

/* ---- One driver -------------------------------------------------------- */

/*
 * A mapped window. Nodes with the same table index form a chain; at most one of
 * them is in the table. Owned by the instance.
 */
struct twin_node {
	uint64_t page;		/* dom0 page */
	uint64_t mapped;	/* where its window shows it */
	uint32_t next;		/* number of the next node + 1, or 0 */
	uint32_t hits;		/* slow-path answers since the last promotion */
};

/* One entry of the call cache: a struct twin_codemap_entry that was found. */
struct twin_call_entry {
	uint64_t vm;
	uint64_t hyp;
};

#define TWIN_CALL_SHIFT		10	/* log2 of the call cache's entries */
#define TWIN_CALL_ENTRIES	(1u << TWIN_CALL_SHIFT)

/* A call of an imported routine by driver code, and its result. */
struct twin_call_frame {
	uint64_t rdi, rsi, rdx, rcx, r8, r9;	/* arguments 1 to 6 */
	uint64_t rax;		/* in: al, how many vector arguments; out: the result */
	const uint64_t *stack;	/* arguments 7 and on, on the driver stack; with a
				 * window, on the data stack, which dom0 may change at
				 * any time */
	uint64_t site;		/* return address in driver code */
	uint64_t target;	/* import number, or the hot routine's address */
};

/*
 * Vector state: xmm, ymm and zmm registers, their masks, MXCSR, and x87 with MMX,
 * whose registers are saved together with them. Driver code may use the first
 * three kinds (crates/svm-verify/src/decode/allow.rs lists the instructions) and so
 * could read the last values computed here: by the host, a guest or another driver.
 *
 * XSAVE's other components are out of reach and stay: no instruction on that list
 * touches PKRU (whose initial value would give more rights, not fewer), AMX tiles or
 * bounds. TWIN_VECTOR_BYTES is the size of XSAVE's standard format up to the last
 * zmm register (SDM vol. 1, 13.4 and 13.5). A platform may keep the state elsewhere
 * and not use this memory.
 */
#define TWIN_VECTOR_BYTES	2688

struct twin_vectors {
	_Alignas(64) uint64_t words[TWIN_VECTOR_BYTES / sizeof(uint64_t)];
};

/*
 * The operations that the runtime needs from the machine it runs on. Each may be
 * called on several CPUs at once unless its comment says otherwise. Only import may
 * sleep or run a driver. Each leaves by returning only (no longjmp, no unwinding).
 * map_window is required, or of an instance with a window unmap_range and, but with gs_is_set,
 * set_gs_base.
 * Where another operation is NULL, what would call it is refused, except that calls of
 * unmap_window and warn are left out. The vector operations are required unless the
 * instance is vector_free.
 *
 * A site's vector registers must survive every operation but import: the others are
 * not calls in the driver's source. The values that an import leaves in them are
 * cleared before the driver goes on.
 *
 * The GS base is the host's in import, port_in, port_out, warn and resolve_upcall, if there is
 * set_gs_base. In the vector operations and set_gs_base it may be the driver's: they do not use GS.
 */
struct twin_platform_ops {
	/*
	 * Map dom0's page `page`, the one before it and the one after it at
	 * consecutive hyp addresses, and give that of `page` itself. Only
	 * `page` must be dom0's: where one of the others is not, or does not
	 * exist, an access to it must fault, as must one to the page after all
	 * three. Returns enum twin_refusal (0 is success). Called with the
	 * instance's table lock held, so once at a time for an instance; never
	 * twice for a page still mapped.
	 */
	int (*map_window)(struct twin_instance *instance, uint64_t page, uint64_t *mapped);
	/* Undo map_window, which returned mapped. No CPU is inside the driver. */
	void (*unmap_window)(struct twin_instance *instance, uint64_t page, uint64_t mapped);
	/*
	 * With a window: an access to the places of dom0's pages [start, start +
	 * length), in the mirror as well, must fault from now on. They are part of a
	 * range that was added. No CPU is inside the driver; the table lock is held.
	 */
	void (*unmap_range)(struct twin_instance *instance, uint64_t start, uint64_t length);
	/* With a window: set this CPU's GS base and give the one that it had. With gs_is_set it may be NULL:
	 * the base stays the driver's in the operations, and none uses GS. */
	uint64_t (*set_gs_base)(struct twin_instance *instance, uint64_t base);
	/*
	 * The stub for dom0's kernel function at vm, or 0 if there is none. The
	 * answer is trusted, and cached until twin_flush.
	 */
	uint64_t (*resolve_upcall)(struct twin_instance *instance, uint64_t vm);
	/*
	 * Perform import number frame->target. May sleep if the caller of
	 * twin_enter may; may enter the same instance again. The result goes to
	 * frame->rax (and frame->rdx); registers not written keep the driver's
	 * value. Returns TWIN_OK; TWIN_FROZEN (twin_resume); or anything else to abort the
	 * driver.
	 */
	int (*import)(struct twin_instance *instance, struct twin_call_frame *frame);
	/* Port input and output of size 1, 2 or 4 bytes, already permitted. */
	uint32_t (*port_in)(struct twin_instance *instance, uint16_t port, uint32_t size);
	void (*port_out)(struct twin_instance *instance, uint16_t port, uint32_t size,
			 uint32_t value);
	/* The driver met a WARN; site is the return address. May be NULL. */
	void (*warn)(struct twin_instance *instance, uint64_t site);
	/*
	 * Save this CPU's vector state; set it to the initial state, MXCSR
	 * 0x1f80 (SDM vol. 1, table 13-1 and 11.6.4); restore the saved state.
	 * Each save is followed by one restore, on the same CPU, in reverse
	 * order, however the driver ends. Called on the host's stack by code
	 * that uses no vector register.
	 */
	void (*vector_save)(struct twin_instance *instance, struct twin_vectors *state);
	void (*vector_clear)(struct twin_instance *instance);
	void (*vector_restore)(struct twin_instance *instance, const struct twin_vectors *state);
};

/* Inclusive range of ports the policy permits. */
struct twin_port_range {
	uint16_t first, last;
};

/* Executable addresses [start, end) of the driver or its stubs. */
struct twin_text_range {
	uint64_t start, end;
};

#define TWIN_TEXT_RANGES	8

/*
 * Pages of dom0's that an instance with a window may use. The place of an address in
 * the window is its low 32 bits, or low 42 bits with TWIN_SCHEME_WINDOW. All numbers are
 * multiples of the page.
 */
struct twin_range {
	uint64_t start;		/* dom0 address */
	uint64_t length;	/* bytes */
	uint32_t unmapped;	/* 1: its places are taken, and every access faults */
};

/* The parts of an instance. The pointed-to memory stays the caller's. */
struct twin_instance_config {
	uint32_t scheme;			/* TWIN_SCHEME_*, from the note */
	struct twin_stlb_entry *stlb;		/* TWIN_STLB_ENTRIES, page aligned */
	struct twin_node *nodes;		/* one for each window ever mapped */
	uint32_t node_count;
	/*
	 * Schemes window32 and window, in place of table and nodes, which are NULL
	 * then: the window's start in the host's addresses, page aligned. With its
	 * mirror and its guards it has the bytes that struct twin_window_shape shows
	 * (<twin/window.h>). Nothing is mapped there but pages of ranges that are added.
	 */
	uint64_t window;
	/* What twin_stack_view is in the code: a multiple of TWIN_WINDOW_SIZE, with
	 * either scheme. */
	uint64_t stack_view;
	struct twin_range *ranges;		/* room for ranges */
	uint32_t range_limit;
	const struct twin_port_range *ports;	/* the policy */
	uint32_t port_count;
	/* 1: no instruction of the instance's code can touch vector state. For a
	 * loader that knows this from the verifier; 0 is always correct. */
	uint32_t vector_free;
	/* 1: with a window, the GS base is the window's start already when twin_enter is
	 * called, outside of imports, and afterwards; the caller has put the host's into
	 * cpu->host_gs, and restores it. set_gs_base is then for calls of host code alone, or NULL. */
	uint32_t gs_is_set;
	const struct twin_platform_ops *ops;
	void *platform;				/* the platform's own */
};

/*
 * Counts of events since twin_instance_init. Hits of the emitted fast path and
 * of the driver's own stack are not counted: counting them would have a cost.
 */
struct twin_statistics {
	uint64_t entries;	/* twin_enter, nested ones included */
	uint64_t fills;		/* windows mapped */
	uint64_t collisions;	/* answers from a chain, table entry taken */
	uint64_t refusals;	/* addresses refused */
	uint64_t promotions;	/* chained pages moved into the table */
	uint64_t call_misses;	/* indirect calls that the cache did not know */
	uint64_t imports;	/* calls out, but for those of hot routines */
	uint64_t warnings;
	uint64_t aborts;
};

struct twin_dma;	/* <twin/dma.h> */

struct twin_lock {
	uint32_t held;
};

/* The number of CPUs inside; the top bit keeps further ones out. */
struct twin_gate {
	uint32_t word;
};

/*
 * One driver, shared. Who may write what:
 *
 *   table entries, heads, nodes   under table_lock, or with the gate closed;
 *                                 read by any CPU inside without a lock
 *   ranges, layout                added under table_lock; changed under table_lock
 *                                 with the gate closed; read by any CPU inside
 *                                 without a lock
 *   call cache                    under call_lock, or with the gate closed;
 *                                 read by any CPU inside without a lock
 *   gate, dead, statistics        atomically
 *   codemap, text, ports, ops, dma, vector_free, enters_gs, window, stack_view [setup]
 */
struct twin_instance {
	uint32_t scheme;
	uint32_t vector_free;
	uint32_t enters_gs;	/* 1: twin_enter sets the GS base */
	uint32_t node_count;
	struct twin_stlb_entry *stlb;
	struct twin_node *nodes;
	uint64_t window;		/* 0: a scheme with a table */
	uint64_t stack_view;
	struct twin_range *ranges;	/* range_count of them, in no order */
	uint32_t range_limit;
	uint32_t range_count;
	uint64_t layout;		/* a number of its own; another when ranges go */
	const struct twin_platform_ops *ops;
	void *platform;
	struct twin_dma *dma;		/* checked around each entry; or NULL */

	struct twin_gate gate;
	uint32_t dead;			/* 0 alive, 1 dying, 2 dead: report is valid */
	uint32_t maintain;		/* 1: maintenance is due when no CPU is inside */

	struct twin_lock table_lock;
	uint32_t nodes_used;		/* nodes ever taken */
	uint32_t free_node;		/* chain of returned nodes: number + 1, or 0 */
	uint32_t heads[TWIN_STLB_ENTRIES];	/* chains: number + 1, or 0 */
	uint64_t contested[TWIN_STLB_ENTRIES / 64];	/* chains with hot nodes */

	struct twin_lock call_lock;
	uint32_t call_collisions;	/* since the cache was last emptied */
	const struct twin_codemap_entry *codemap;	/* ascending by vm */
	uint64_t codemap_count;

	const struct twin_port_range *ports;
	uint32_t port_count;
	uint32_t text_count;
	struct twin_text_range text[TWIN_TEXT_RANGES];

	struct twin_statistics statistics;
	struct twin_abort_report report;	/* of the first abort */
	struct twin_call_entry call_cache[TWIN_CALL_ENTRIES];
	uint64_t switches_gs;		/* 1: calls of host code have its GS base */
};

/* Bytes of struct twin_instance, for callers not in C. [any] */
uint64_t twin_instance_size(void);

/* Make an instance with nothing mapped and no code. TWIN_INVALID if the
 * configuration breaks a rule. [setup] */
int twin_instance_init(struct twin_instance *instance, const struct twin_instance_config *config);

/* Give the targets that indirect calls may reach: strictly ascending by vm,
 * else TWIN_INVALID. The memory stays the caller's. [setup] */
int twin_instance_set_codemap(struct twin_instance *instance,
			      const struct twin_codemap_entry *codemap, uint64_t count);

/* Declare addresses to be code of this instance (sections, stubs), so that a
 * fault there is the driver's. TWIN_INVALID when the list is full. [setup] */
int twin_instance_add_text(struct twin_instance *instance, uint64_t start, uint64_t end);

/* Is rip code of this instance? [any] */
bool twin_instance_has_text(const struct twin_instance *instance, uint64_t rip);

/* The report of the abort that killed the instance, or NULL if it lives or
 * another CPU is writing the report at this moment. The pointer is good as long
 * as the instance. cpu->report has this CPU's own last abort. [any] */
const struct twin_abort_report *twin_instance_report(const struct twin_instance *instance);

/* Copy the counts so far; other CPUs go on counting. [any] */
void twin_instance_statistics(const struct twin_instance *instance,
			      struct twin_statistics *copy);

/* ---- Running the driver ------------------------------------------------ */

/*
 * Run the driver's function at hyp with up to six arguments on cpu's driver
 * stack and give its rax in *result. hyp must be a function of this instance
 * (twin_call_lookup gives one); it is trusted, as its caller is.
 *
 * Returns TWIN_OK; TWIN_ABORTED: the driver was unwound and the instance is dead
 * (*result is untouched); TWIN_DEAD: it was dead before; TWIN_BUSY: cpu runs
 * another instance or is in no import; TWIN_NO_STACK; or TWIN_INVALID: the instance has
 * a window, and cpu's data stack is not in it.
 *
 * [outside], or [inside] an import, on cpu's own thread only. May be preempted
 * if the platform lets it; may sleep only in imports. The driver sees zeroes
 * in every register that carries no argument, vector registers included, and DF,
 * AC and NT clear. The host's registers that the psABI requires to be kept are kept,
 * and its vector registers, AC, NT and GS base too, however the driver ends.
 */
int twin_enter(struct twin_cpu *cpu, struct twin_instance *instance, uint64_t hyp,
	       const uint64_t args[6], uint64_t *result);

/*
 * Entering in a fifth of the instructions, for a host that enters one instance on a CPU again
 * and again. Preparing asks beforehand what is the same each time: the instance has a window
 * with cpu's data stack in it, gs_is_set, vector_free, and no twin_dma; TWIN_INVALID if not.
 * [setup], when all else of the instance is set.
 *
 * Entering is twin_enter with three arguments and the instance that cpu is prepared for;
 * result is not NULL, AC and NT are clear already, stack arguments are what driver code left
 * in their place on its data stack. Whatever is in the way goes by twin_enter itself: a
 * nested entry, a dead instance, a closed gate, maintenance, ranges that have changed.
 */
int twin_prepare_quick(struct twin_cpu *cpu, struct twin_instance *instance);
int twin_enter_quick(struct twin_cpu *cpu, uint64_t hyp, uint64_t a0, uint64_t a1, uint64_t a2,
		     uint64_t *result);

/*
 * Freezing. An import that cannot be done at once, where nothing may sleep, gives
 * TWIN_FROZEN: driver code stays as it is on cpu's stack, and twin_enter, or
 * twin_enter_quick, returns that. twin_resume goes on with it, with the import's result in
 * rax, and returns as twin_enter does, TWIN_FROZEN again among that. Until then cpu takes no
 * other entry (TWIN_BUSY). For an instance with a window, vector_free, without twin_dma, and
 * an outer entry; otherwise the driver is aborted. Windows may change meanwhile.
 *
 * twin_abandon: nobody will answer. The instance is dead, the import being the reason; cpu
 * is free. Both [outside], on cpu's own thread only; GS base as for twin_enter.
 */
int twin_resume(struct twin_cpu *cpu, struct twin_instance *instance, uint64_t rax,
		uint64_t *result);
void twin_abandon(struct twin_cpu *cpu, struct twin_instance *instance);

/*
 * Keep the instance's windows from changing, as running its driver does, so
 * that host code may use twin_translate. Does not nest: never hold twice or
 * enter while holding. Spins while another CPU changes windows. [outside]
 */
void twin_instance_hold(struct twin_instance *instance);
void twin_instance_release(struct twin_instance *instance);

/* ---- Translation ------------------------------------------------------- */

/*
 * Translate va for this instance as the slow path does, except for its own stacks.
 * TWIN_MAPPED (0): *mapped is valid for TWIN_BELOW bytes before it and
 * TWIN_COVERED from it on, as far as dom0 has those pages, until the driver
 * returns or the hold is released. Any other enum twin_refusal: *mapped is
 * untouched. [inside] or held; may take the table lock.
 */
int twin_translate(struct twin_instance *instance, uint64_t va, uint64_t *mapped);

/*
 * dom0 no longer has these pages, or has others there: forget every window
 * that shows one of them. Only possible while no CPU is inside. New entries
 * are kept out while this polls, up to `patience` times, for the last CPU to
 * leave. If one stays, nothing changes and TWIN_BUSY is returned: try again
 * before the pages are reused. A poll takes some tens of cycles; where CPUs are
 * preempted inside, as in a process, allow for their time slice.
 * [outside]; [inside] it is always TWIN_BUSY. Calls unmap_window.
 *
 * With a window the pages are taken out of the ranges: what is left of a
 * range on either side stays (or, if there is no room for one range more, the part
 * before them). Calls unmap_range. To show the pages again, map and add them.
 */
int twin_unmap(struct twin_instance *instance, uint64_t first_page, uint64_t pages,
	       uint64_t patience);

/* The same for every window and every cached call target. Same context. Ranges that
 * were added stay: they are not found again by themselves. */
int twin_flush(struct twin_instance *instance, uint64_t patience);

/*
 * The parts of twin_unmap, for a platform that has more to change while no CPU
 * is inside: quiesce (TWIN_OK, or TWIN_BUSY and nothing to resume), then drop
 * `pages` pages from dom0 address first_page on, any number of times, then resume.
 * Entering CPUs spin meanwhile, so be quick and do not sleep. [outside]
 */
int twin_instance_quiesce(struct twin_instance *instance, uint64_t patience);
void twin_instance_drop(struct twin_instance *instance, uint64_t first_page, uint64_t pages);
void twin_instance_resume(struct twin_instance *instance);

/* ---- Calls ------------------------------------------------------------- */

/* The counterpart in this instance of dom0 code address vm: from the codemap,
 * else from resolve_upcall; 0 if it is no permitted target. [any], if the
 * platform's resolve_upcall is too. */
uint64_t twin_call_lookup(struct twin_instance *instance, uint64_t vm);

/* A hot routine: runs on the host's stack, reached through twin_call_out. Like
 * the import operation, with the CPU as a further argument. It uses no GS, whose base is the driver's if it has
 * a window: changing it twice costs more than most of them. Its caller is code that a C compiler made: it
 * finds rax and the frame's registers, and nothing in the others that a call may destroy (psABI 3.2.1). */
typedef int (*twin_hot_routine)(struct twin_cpu *cpu, struct twin_call_frame *frame);

/*
 * Write the report of an abort and mark the instance dead. For hot routines
 * and imports, which then return TWIN_ABORTED; without it their abort is
 * reported as TWIN_ABORT_IMPORT. [inside], on cpu's own thread.
 */
void twin_abort_record(struct twin_cpu *cpu, enum twin_abort_kind kind, uint32_t reason,
		       uint64_t address, uint64_t rip);

/* ---- Policy ------------------------------------------------------------ */

/* Whether the policy permits all of [port, port + size). One range must hold them
 * all. size is 1, 2 or 4. [any] */
bool twin_port_allowed(const struct twin_instance *instance, uint16_t port, uint32_t size);

/* ---- For platform fault handlers --------------------------------------- */

/*
 * Whether a fault at rip with stack pointer rsp is the driver's: this CPU is on
 * its driver stack, and rip is in the instance's code or the runtime's entry code,
 * or nothing was executed (fetched: the fault is that of fetching at rip). [any]
 */
bool twin_fault_is_drivers(const struct twin_cpu *cpu, uint64_t rip, uint64_t rsp, bool fetched);

/*
 * Write the report and mark the instance dead. The caller then resumes at
 * twin_abort_from_fault with rdi = cpu. Only if the fault is the driver's. rip and rsp are
 * the fault's. address: what was accessed, 0 if unknown; trap: the processor's number. An address in
 * the instance's window is reported as dom0's. The GS base may be the driver's.
 * [any], on cpu's own thread.
 */
void twin_fault_record(struct twin_cpu *cpu, uint64_t rip, uint64_t rsp, uint64_t address,
		       uint32_t trap);

/*
 * The time of the invocation that cpu runs is up; rip and rsp are those that the clock's
 * interrupt found. True: driver code was interrupted, the report is written
 * (TWIN_ABORT_TIME), and the caller resumes at twin_abort_from_fault with rdi = cpu. False:
 * the runtime or the host was; the driver is aborted before control goes back to it. If
 * nothing is running, nothing happens. Call it again at the next tick: an interrupt may
 * come between the runtime's last look and the driver. [any], on cpu's own thread.
 */
bool twin_stop(struct twin_cpu *cpu, uint64_t rip, uint64_t rsp);

/* Resume here, rdi = cpu, any stack, to make twin_enter return TWIN_ABORTED.
 * Not a C function. */
void twin_abort_from_fault(void);

/* ---- What driver code and stubs refer to; none is a C function --------- */

void twin_import_entry(void);	/* jump here with the import number in r11d */
void twin_call_out(void);	/* jump here with a twin_hot_routine in r11 */

/*
 * Jump here with the address of driver code in r11, a routine that takes or frees the lock
 * at dom0 address rdi: notes it, then goes there. Changes rax, rcx, rdx, r8, r9, r10 and
 * the flags, which a call may destroy (psABI 3.2.1). The notes are in the context, which
 * driver code does not reach.
 */
void twin_note_lock(void);
void twin_note_unlock(void);

/* The entries that a rewritten object may name, for loaders. A driver may
 * name nothing else that begins with "twin_". Ends with a NULL name. */
struct twin_entry_point {
	const char *name;
	void (*address)(void);
};
extern const struct twin_entry_point twin_entry_points[];

/* The address of that entry, or 0. [any] */
uint64_t twin_entry_address(const char *name);

#endif /* TWIN_RUNTIME_H */
