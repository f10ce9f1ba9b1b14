/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Declarations shared by the files of the testbed platform.
 */
#ifndef TWIN_PLATFORM_H
#define TWIN_PLATFORM_H

#include <twin/testbed.h>
#include <twin/window.h>

#define PAGE ((uint64_t)TWIN_PAGE_SIZE)

/* A window slot: the page before, the window's own and the next, and a page that
 * is never mapped. */
#define SLOT_PAGES (TWIN_BELOW / PAGE + TWIN_WINDOW_PAGES)
#define SLOT_BYTES ((SLOT_PAGES + 1) * PAGE)

/* Regions and windows of one driver; all of it under lock. */
struct twin_testbed {
	struct twin_platform_ops ops;
	struct twin_testbed_host host;
	struct twin_stlb_entry *stlb;
	struct twin_stlb_entry *own_stlb;	/* NULL if the caller's */
	uint64_t window;		/* 0: an instance with a table */
	struct twin_window_shape shape;
	struct twin_range *ranges;	/* the instance's, if it has a window */
	uint32_t range_limit;
	struct twin_range collision;	/* what the last refused range met */

	struct twin_lock lock;
	struct twin_testbed_region *regions;	/* in no order */
	uint32_t region_count, region_limit;

	uint64_t slots;			/* first window; a guard page is before it; 0: none */
	uint32_t slot_limit;
	uint32_t free_count;
	uint32_t *free_slots;		/* stack of free slot numbers */
	uint64_t *slot_pages;		/* dom0 page each slot shows */

	struct twin_node *nodes;
	struct twin_instance instance;
};

/* window.c; no libc */
int twin_testbed_map_window(struct twin_instance *instance, uint64_t page, uint64_t *mapped);
void twin_testbed_unmap_window(struct twin_instance *instance, uint64_t page, uint64_t mapped);
/* The dom0 address that `address` shows if it lies in a slot, else `address`.
 * For reports; takes no lock. */
uint64_t twin_testbed_dom0_address(const struct twin_testbed *testbed, uint64_t address);
void twin_testbed_lock(struct twin_testbed *testbed);
void twin_testbed_unlock(struct twin_testbed *testbed);

/* The system call mmap: an address, or what is none. A hole: whether it is one now. */
uint64_t twin_testbed_map_pages(uint64_t at, uint64_t length, uint64_t protection, uint64_t flags,
				int64_t fd, uint64_t offset);
bool twin_testbed_punch_hole(uint64_t at, uint64_t length);

/* mirror.c: the window of an instance that has one. */
bool twin_testbed_reserve_window(struct twin_testbed *testbed, uint64_t wanted);
void twin_testbed_free_window(struct twin_testbed *testbed);
int twin_testbed_mirror(struct twin_testbed *testbed, const struct twin_testbed_region *region);
void twin_testbed_unmap_range(struct twin_instance *instance, uint64_t start, uint64_t length);

/* Whether the processor has RDGSBASE and WRGSBASE, and Linux permits them to users. [setup] */
bool twin_testbed_gs_permitted(void);

/* gs.c; no libc. Whether the instructions may be used. Idempotent. [setup] */
void twin_testbed_gs_start(bool permitted);
uint64_t twin_testbed_set_gs_base(struct twin_instance *instance, uint64_t base);

/* vectors.c; no libc. Choose an instruction to save vector state that the processor
 * has: the one given, or the next worse. VECTORS_UNKNOWN if the state is larger than
 * struct twin_vectors; then nothing is chosen. Idempotent. [setup] */
enum vector_method { VECTORS_UNKNOWN, VECTORS_FXSAVE, VECTORS_XSAVE, VECTORS_XSAVEC };
enum vector_method twin_testbed_vectors_start(enum vector_method best);
/* The operations. */
void twin_testbed_vector_save(struct twin_instance *instance, struct twin_vectors *state);
void twin_testbed_vector_clear(struct twin_instance *instance);
void twin_testbed_vector_restore(struct twin_instance *instance, const struct twin_vectors *state);

/* callback.c */
void twin_testbed_set_callbacks(struct twin_platform_ops *ops, const struct twin_testbed_host *host);

/* block.c: the context of the known block that rsp points into, or NULL. Safe
 * in signal handlers. */
struct twin_cpu *twin_testbed_cpu_at(uint64_t rsp);

#endif /* TWIN_PLATFORM_H */
