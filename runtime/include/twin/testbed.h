/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The platform for a Linux process: the process is the hypervisor, dom0's
 * memory is in files (memfds) that another process shares.
 *
 * A window is three file pages mapped next to each other in reserved address space,
 * with holes for pages that dom0 does not have, then a page that is never mapped
 * (platform/testbed/window.c). An instance of the schemes window32 and window has one
 * window of 4 GiB or 4 TiB instead, in which dom0's regions lie
 * (platform/testbed/mirror.c). Mapping uses system calls only, no libc, so a slow path
 * keeps the driver's vector registers; ports, warnings and resolve_upcall save vector
 * state around the host's callbacks. Contexts as in <twin/runtime.h>.
 *
 * The process's own signal handlers should use SA_ONSTACK: one that interrupts
 * driver code otherwise runs on the driver stack. They may not use GS: of an instance
 * with a window its base is the driver's then.
 */
#ifndef TWIN_TESTBED_H
#define TWIN_TESTBED_H

#include <stdbool.h>
#include <stdint.h>

#include <twin/runtime.h>

/* ---- Drivers ----------------------------------------------------------- */

/* A piece of dom0's address space. All numbers are multiples of the page. */
struct twin_testbed_region {
	uint64_t dom0_start;	/* dom0 address */
	uint64_t length;	/* bytes */
	uint64_t file_offset;	/* where it begins in the file */
	int32_t fd;		/* the host's, open as long as the region is
				 * known, and never shorter than it: seal what
				 * dom0 could shorten, for the host's own reads
				 * would fault; < 0: dom0's address space, but
				 * empty */
	uint32_t writable;	/* 0: a write faults, and so aborts */
};

/* The host's services for the driver. Callbacks may be NULL, see struct
 * twin_platform_ops for their rules; data is passed on to each. */
struct twin_testbed_host {
	void *data;
	uint64_t (*resolve_upcall)(void *data, uint64_t vm);
	int (*import)(void *data, struct twin_call_frame *frame);
	uint32_t (*port_in)(void *data, uint16_t port, uint32_t size);
	void (*port_out)(void *data, uint16_t port, uint32_t size, uint32_t value);
	void (*warn)(void *data, uint64_t site);
};

struct twin_testbed_config {
	uint32_t scheme;		/* TWIN_SCHEME_* */
	uint32_t windows;		/* most windows mapped at once; 0: 8192 */
	uint32_t regions;		/* most regions known at once; 0: 1024 */
	uint32_t port_count;
	uint32_t vector_free;		/* see struct twin_instance_config */
	/* 1: with a window, its start is the GS base of each thread that enters, which the host has
	 * set (twin_testbed_window); its callbacks have the same base, and use no GS. */
	uint32_t gs_is_set;
	const struct twin_port_range *ports;	/* the caller's, kept */
	struct twin_stlb_entry *stlb;	/* page aligned, below 2 GiB, the caller's;
					 * NULL: found and owned by the platform, or
					 * none, if the scheme has a window */
	uint64_t window;		/* its start, page aligned; 0: anywhere. Mirror and
					 * guards are around it (<twin/window.h>) */
	uint64_t stack_view;		/* see struct twin_instance_config */
	struct twin_testbed_host host;	/* copied */
};

struct twin_testbed;

/* Make a driver instance, or NULL with errno set. [setup] */
struct twin_testbed *twin_testbed_create(const struct twin_testbed_config *config);

/* Free it and unmap its windows. No CPU is inside, and none will be. [setup] */
void twin_testbed_destroy(struct twin_testbed *testbed);

/* The instance, for <twin/runtime.h>: twin_enter, twin_instance_set_codemap,
 * twin_instance_add_text ... Lives as long as testbed. [any] */
struct twin_instance *twin_testbed_instance(struct twin_testbed *testbed);

/* Its translation table, to which `twin_stlb` in its code resolves. [any] */
struct twin_stlb_entry *twin_testbed_stlb(struct twin_testbed *testbed);

/* Where its window starts, to which `twin_window` in its code resolves; 0: it has a
 * table. [any] */
uint64_t twin_testbed_window(const struct twin_testbed *testbed);

/* Tell the platform of a region of dom0. TWIN_INVALID if it overlaps a known
 * one, is not made of pages, cannot be mapped, or is one too many; TWIN_COLLISION if it
 * has a place in the window in common with a range that twin_testbed_collision then
 * gives, or with the guard at the window's start. With a table, what is mapped beside it
 * already keeps its hole there: an access across the two aborts the driver. [any]; spins on a
 * lock. */
int twin_testbed_add_region(struct twin_testbed *testbed, const struct twin_testbed_region *region);
const struct twin_range *twin_testbed_collision(const struct twin_testbed *testbed);

/*
 * With a window: the pages of a file from file_offset on are cpu's data stack:
 * TWIN_STACK_HIGH - TWIN_STACK_LOW bytes, which dom0 has at the block's address plus
 * stack_view plus TWIN_STACK_LOW. Statuses as above, and TWIN_INVALID if the place of
 * that address is not its low 32 bits. Without it cpu cannot run the instance. [any];
 * spins on a lock.
 */
int twin_testbed_add_stack(struct twin_testbed *testbed, struct twin_cpu *cpu, int32_t fd,
			   uint64_t file_offset);

/* Forget the region that begins at dom0_start and every window into it; see
 * twin_unmap for patience and TWIN_BUSY. TWIN_INVALID: there is none. [outside] */
int twin_testbed_remove_region(struct twin_testbed *testbed, uint64_t dom0_start, uint64_t patience);

/* ---- CPUs -------------------------------------------------------------- */

/*
 * Make a stack block, at the address `wanted` (a multiple of TWIN_STACK_BLOCK) or
 * anywhere if that is 0. Returns its context or NULL with errno set. At most
 * TWIN_TESTBED_BLOCKS exist at once. [any]
 */
#define TWIN_TESTBED_BLOCKS 256
struct twin_cpu *twin_testbed_block_create(uint64_t wanted);

/* Not while in use. [any] */
void twin_testbed_block_destroy(struct twin_cpu *cpu);

/* ---- Faults ------------------------------------------------------------ */

/*
 * Install handlers for SIGSEGV, SIGBUS, SIGILL, SIGFPE and SIGTRAP: a fault of
 * driver code aborts the driver, any other goes to the handler installed before
 * (its function is called; its sa_mask and SA_RESETHAND are not imitated). Once in
 * a process; later calls do nothing. Returns 0, or -1 with errno. [setup]
 */
int twin_testbed_faults_start(void);

/*
 * Give the calling thread an alternate signal stack large enough for the
 * handlers, unless it has one. Every thread that enters drivers needs one,
 * because an overflowing driver stack has no room for a handler. Returns 0 or -1
 * with errno. stop frees what start allocated; call it before the thread ends.
 */
int twin_testbed_thread_start(void);
void twin_testbed_thread_stop(void);

/* ---- Stubs ------------------------------------------------------------- */

/*
 * Write a stub of TWIN_TESTBED_STUB bytes at `at`, which the caller makes
 * executable afterwards and declares by twin_instance_add_text. A stub reaches
 * any address and changes nothing but r11.
 */
#define TWIN_TESTBED_STUB 32
void twin_testbed_write_import(void *at, uint32_t number);
void twin_testbed_write_hot(void *at, twin_hot_routine routine);
/* The same for a routine of driver code at hyp, which takes (or frees) the lock that is its
 * first argument: see twin_note_lock. Changes what that does, and r11. */
void twin_testbed_write_lock(void *at, uint64_t hyp, bool frees);
/* The same, but changes no register: for runtime entries out of a call's reach. */
void twin_testbed_write_jump(void *at, uint64_t target);

#endif /* TWIN_TESTBED_H */
